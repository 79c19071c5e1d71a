/** Set up before every unit test file: a socket, a server or a child process is an error there. */

/** Set up before every unit test file: a socket, a server or a child process is an error there. */
import childProcess, { ChildProcess } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

const refuse = (what: string) => (): never => {
  throw new Error(`A unit test must not use ${what}: move it to a file named *.integration.test.ts.`);
};

net.Socket.prototype.connect = refuse('the network');
net.Server.prototype.listen = refuse('the network');
(ChildProcess.prototype as unknown as { spawn: unknown }).spawn = refuse('child processes');
childProcess.spawnSync = refuse('child processes');
childProcess.execFileSync = refuse('child processes');
childProcess.execSync = refuse('child processes');
syncBuiltinESMExports();
