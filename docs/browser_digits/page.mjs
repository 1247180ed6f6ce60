// Recognises what is drawn on a canvas.

import { counts, open } from "./digits.mjs";

const canvas = document.getElementById("plane"), pen = canvas.getContext("2d");
const told = document.getElementById("result"), guess = document.getElementById("guess");
const missing = "ONNX Runtime Web is not part of this build of the site: run make test-runtimes, then make site.";
const ort = await import("onnxruntime-web").catch((error) => {
  canvas.style.display = "none";
  told.textContent = missing;
  throw error;
});
const [bytes, samples] = await Promise.all([
  fetch("digits.onnx").then(async (answer) => new Uint8Array(await answer.arrayBuffer())),
  fetch("samples.json").then((answer) => answer.json()),
]);
const digits = await open(ort, bytes);
const start = performance.now();
const found = await digits(samples.images);
const right = found.filter((digit, i) => digit === samples.labels[i]).length;
told.textContent = `${right} of ${found.length} digits right, ${(performance.now() - start).toFixed(1)} ms, ${(bytes.length / 1024).toFixed(1)} kB of int8.`;

let points = [], last = null;
const at = (event) => [(event.offsetX * canvas.width) / canvas.clientWidth, (event.offsetY * canvas.height) / canvas.clientHeight];
canvas.addEventListener("pointerdown", (event) => { last = at(event); });
canvas.addEventListener("pointermove", (event) => {
  if (!last) return;
  const next = at(event), steps = Math.ceil(Math.hypot(next[0] - last[0], next[1] - last[1])) + 1;
  for (let i = 0; i <= steps; i++) points.push([0, 1].map((axis) => last[axis] + ((next[axis] - last[axis]) * i) / steps));
  pen.lineWidth = 14;
  pen.lineCap = "round";
  pen.strokeStyle = getComputedStyle(document.body).color;
  pen.beginPath();
  pen.moveTo(...last);
  pen.lineTo(...next);
  pen.stroke();
  last = next;
});
addEventListener("pointerup", async () => {
  last = null;
  if (points.length) guess.textContent = `It is a ${(await digits([counts(points)]))[0]}.`;
});
document.getElementById("clear").addEventListener("click", () => {
  points = [];
  pen.clearRect(0, 0, canvas.width, canvas.height);
  guess.textContent = "Draw a digit.";
});
