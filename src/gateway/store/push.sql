-- Version 2. `url`: where a listener wants its messages pushed to; `declared`: what the configuration said of it then.
ALTER TABLE listener ADD COLUMN url TEXT;
ALTER TABLE listener ADD COLUMN declared TEXT;
