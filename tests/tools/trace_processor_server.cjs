// A trace processor for tests: runs Perfetto's WebAssembly engine in this process and answers the four HTTP
// requests that the Python client of the `perfetto` package makes (/parse, /notify_eof, /query, /status).
//
//   node trace_processor_server.cjs ENGINE_FOLDER
//
// The engine (engine_bundle.node.js, trace_processor.wasm) expects a browser worker; a few globals stand in for it.
// It talks through one message port in TraceProcessorRpcStream messages: each request is a TraceProcessorRpc with
// a sequence number (1) and a method (2); arguments and results have their own field numbers. One process holds one
// trace. The port that was taken is printed to stdout as `listening PORT`; the process ends when stdin closes, so
// that it never outlives the test that started it.
'use strict';

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const vm = require('node:vm');

const METHOD = {append: 1, finalize: 2, query: 3, status: 10};
const ARGUMENT = {append: 101, query: 103};
const RESULT = {append: 201, query: 203, status: 210};

// ---- the little protobuf that the envelope needs ----

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    if (rest < 0x80n) {
      bytes.push(low);
      return Buffer.from(bytes);
    }
    bytes.push(low | 0x80);
  }
}

const integerField = (number, value) => Buffer.concat([varint(number << 3), varint(value)]);
const bytesField = (number, data) => Buffer.concat([varint((number << 3) | 2), varint(data.length), data]);

function* decode(message) {
  let at = 0;
  const readVarint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = Number(readVarint());
    const wire = key & 7;
    if (wire === 0) {
      yield [key >>> 3, readVarint()];
      continue;
    }
    const size = wire === 2 ? Number(readVarint()) : wire === 1 ? 8 : 4;
    yield [key >>> 3, message.subarray(at, at + size)];
    at += size;
  }
}

// ---- the engine ----

function loadEngine(folder) {
  const source = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
  const replaceOnce = (text, from, to) => {
    if (!text.includes(from)) throw new Error(`the engine bundle has no "${from}": not the version that this file knows`);
    return text.replace(from, to);
  };
  let code = source.split(';(self.__SOURCEMAPS')[0];
  // only the 32-bit module is in the package; hand its bytes in; and keep hold of the bridge
  code = replaceOnce(code, 'this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;');
  code = replaceOnce(code, 'locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: self.engineWasm,');
  code = replaceOnce(code, 'const wasmBridge = new wasm_bridge_1.WasmBridge();',
                     'const wasmBridge = new wasm_bridge_1.WasmBridge(); self.engineBridge = wasmBridge;');
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = class {};
  globalThis.location = {href: `file://${folder}/`};
  globalThis.engineWasm = fs.readFileSync(path.join(folder, 'trace_processor.wasm'));
  vm.runInThisContext(code, {filename: 'engine_bundle.node.js'});
  return globalThis.engineBridge;
}

async function whenReady(bridge) {
  for (let waited = 0; !(bridge.reqBufferAddr > 0); waited += 5) {
    if (waited > 60_000) throw new Error('the engine did not start within a minute');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

class Engine {
  constructor(bridge) {
    this.answers = [];
    this.sequence = 0;
    this.port = {postMessage: (data) => this.answers.push(Buffer.from(data)), onmessage: null};
    bridge.initialize(this.port);
  }

  // One request; gives the bodies of the wanted field from every answer.
  call(method, wanted, argument = []) {
    const request = Buffer.concat([integerField(1, this.sequence++), integerField(2, method), ...argument]);
    this.answers = [];
    this.port.onmessage({data: new Uint8Array(bytesField(1, request))});
    const bodies = [];
    for (const [field, rpc] of decode(Buffer.concat(this.answers))) {
      if (field !== 1) continue;
      for (const [number, body] of decode(rpc)) if (number === wanted) bodies.push(body);
    }
    return bodies;
  }

  handle(url, body) {
    switch (url) {
      case '/parse': return Buffer.concat(this.call(METHOD.append, RESULT.append, [bytesField(ARGUMENT.append, body)]));
      case '/notify_eof': this.call(METHOD.finalize, -1); return Buffer.alloc(0);
      case '/query': return Buffer.concat(this.call(METHOD.query, RESULT.query, [bytesField(ARGUMENT.query, body)]));
      case '/status': return Buffer.concat(this.call(METHOD.status, RESULT.status));
      default: return null;
    }
  }
}

// ---- HTTP ----

async function main() {
  const bridge = loadEngine(path.resolve(process.argv[2]));
  await whenReady(bridge);
  const engine = new Engine(bridge);
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      try {
        const answer = engine.handle(request.url.split('?')[0], Buffer.concat(parts));
        response.statusCode = answer === null ? 404 : 200;
        response.end(answer ?? undefined);
      } catch (error) {
        response.statusCode = 500;
        response.end(String(error));
      }
    });
  });
  server.keepAliveTimeout = 600_000; // a client that waits for a long load must find its connection open
  server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
