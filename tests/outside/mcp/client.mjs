// The client of npm's package @modelcontextprotocol/sdk, unmodified, on standard input and output and over HTTP: lists, calls,
// answers and cancels. PROGRAM URL TOKEN-FILE are its arguments.
import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [program, url, file] = process.argv.slice(2);
const require = createRequire(`${process.env.KIT}/package.json`);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = require('@modelcontextprotocol/sdk/types.js');

const headers = { Authorization: `Bearer ${readFileSync(file, 'utf8').trim()}` };
const transports = [
    () => new StdioClientTransport({ command: program, args: ['mcp', 'organism.yaml'] }),
    () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
];
for (const transport of transports) {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }));
    await client.connect(transport());
    const { tools } = await client.listTools();
    assert(tools.some(({ name }) => name === 'greet'));
    const greeted = await client.callTool({ name: 'greet', arguments: { name: 'Ada' } });
    assert.equal(greeted.content[0].text, 'Hello, Ada!');
    const wrong = await client.callTool({ name: 'greet', arguments: { nme: 'Ada' } });
    assert(wrong.isError && wrong.content[0].text.includes('nme'));
    const asked = await client.callTool({ name: 'test_input_required_result_elicitation', arguments: {} });
    assert.equal(asked.content[0].text, 'Hello, Ada!');
    const told = [];
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress: (sign) => told.push(sign) });
    assert(told.length >= 3);
    const cancel = new AbortController();
    const slow = client.callTool({ name: 'slow_compute', arguments: { seconds: 600 } }, undefined, { signal: cancel.signal });
    setTimeout(() => cancel.abort(), 300);
    await assert.rejects(slow);
    assert((await client.readResource({ uri: 'test://static-text' })).contents[0].text);
    await client.close();
}
console.log('the client of npm: ok');
