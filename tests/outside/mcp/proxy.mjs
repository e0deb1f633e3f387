// Adds the token of a client to each request: the suite has no way to send one. TARGET PORT TOKEN-FILE are its arguments.
import { createServer, request } from 'node:http';
import { readFileSync } from 'node:fs';

const [target, port, file] = process.argv.slice(2);
const { hostname, port: to } = new URL(target);
const authorization = `Bearer ${readFileSync(file, 'utf8').trim()}`;

const server = createServer((incoming, outgoing) => {
    const { method, url } = incoming;
    const headers = { ...incoming.headers, authorization };
    const onward = request({ hostname, port: to, method, path: url, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    // A client that leaves leaves there, too.
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
