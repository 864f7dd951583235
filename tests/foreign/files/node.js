const { Worker, isMainThread, workerData } = require('worker_threads'), crypto = require('crypto'), zlib = require('zlib');
if (isMainThread) {
  const shared = new SharedArrayBuffer(8), cell = new Int32Array(shared); let left = 4;
  for (let i = 0; i < 4; ++i) new Worker(__filename, { workerData: shared }).on('exit', () => {
    if (--left) return; console.log(cell[0]);
    for (let k = 0; k < 3; ++k) crypto.pbkdf2('p', 's' + k, 2000, 16, 'sha256', (e, d) => { cell[1] ^= d.readInt32LE(0); if (++left == 3)
      zlib.gzip(Buffer.alloc(500000, 'abc'), (e, z) => console.log(cell[1], zlib.gunzipSync(z).length)); });
  });
} else { const cell = new Int32Array(workerData); for (let k = 0; k < 50000; ++k) Atomics.add(cell, 0, 1); }
