// A network learns the points of a canvas, in the visitor's browser.

const CELLS = 45; // of the picture of the decision, in each direction
const COLOURS = { blue: [33, 102, 172], orange: [230, 120, 20] };
const canvas = document.getElementById("plane");
const pen = canvas.getContext("2d");
const told = document.getElementById("result");

// Two half moons, until the visitor draws others.
const points = [];
for (let i = 0; i < 60; i++) {
  const angle = (Math.PI * i) / 59, wide = 0.12 * Math.sin(7 * i);
  points.push([0.55 * Math.cos(angle) - 0.2 + wide, 0.55 * Math.sin(angle) - 0.2, "blue"]);
  points.push([0.2 - 0.55 * Math.cos(angle) + wide, 0.2 - 0.55 * Math.sin(angle), "orange"]);
}
const grid = Array.from({ length: CELLS * CELLS }, (_, i) => [
  ((i % CELLS) + 0.5) * (2 / CELLS) - 1, 1 - (Math.floor(i / CELLS) + 0.5) * (2 / CELLS),
]);
let trainer, fresh, running = true;

async function draw() {
  const { probabilities } = await trainer.predict(grid);
  const second = trainer.manifest.label.classes[1], first = trainer.manifest.label.classes[0];
  const cell = canvas.width / CELLS;
  for (let i = 0; i < grid.length; i++) {
    const share = probabilities[i][1];
    const mixed = [0, 1, 2].map((k) => Math.round(255 - 0.45 * (255 - (share * COLOURS[second][k] + (1 - share) * COLOURS[first][k]))));
    pen.fillStyle = `rgb(${mixed})`;
    pen.fillRect((i % CELLS) * cell, Math.floor(i / CELLS) * cell, cell + 1, cell + 1);
  }
  for (const [x, y, name] of points) {
    pen.fillStyle = `rgb(${COLOURS[name]})`;
    pen.beginPath();
    pen.arc(((x + 1) * canvas.width) / 2, ((1 - y) * canvas.height) / 2, 4, 0, 7);
    pen.fill();
  }
}

async function learn() {
  for (;;) {
    if (running && points.length) {
      const X = points.map(([x, y]) => [x, y]), y = points.map(([, , name]) => name);
      let objective = 0;
      await trainer.fit(X, y, { epochs: 5, onEpoch: (event) => { objective = event.objective; } });
      const { score } = await trainer.evaluate(X, y);
      told.textContent = `Epoch ${trainer.epoch}: mean loss ${objective.toFixed(4)}, ${(100 * score).toFixed(1)} % of ${points.length} points right`;
    }
    await draw();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

canvas.addEventListener("pointerdown", (event) => {
  const box = canvas.getBoundingClientRect();
  const name = document.querySelector("input[name=class]:checked").value;
  points.push([((event.clientX - box.left) / box.width) * 2 - 1, 1 - ((event.clientY - box.top) / box.height) * 2, name]);
});
document.getElementById("clear").addEventListener("click", () => { points.length = 0; });
document.getElementById("fresh").addEventListener("click", () => { trainer.values = { ...fresh }; });
document.getElementById("start").addEventListener("click", (event) => {
  running = !running;
  event.target.textContent = running ? "Pause" : "Continue";
});

const missing = "ONNX Runtime Web is not part of this build of the site: run make test-runtimes, then make site.";
try {
  await import("onnxruntime-web").catch(() => { throw new Error(missing); });
  const { load, ort } = await import("./index.mjs");
  ort.env.wasm.wasmPaths = new URL("./ort/", document.baseURI).href;
  ort.env.wasm.numThreads = 1;
  trainer = await load("./package");
  fresh = trainer.values;
  await learn();
} catch (error) {
  if (error.message === missing) canvas.style.display = "none";
  told.textContent = error.message === missing ? missing : `The network cannot be trained here: ${error.message}`;
}
