// Fails unless the package that npm packs contains ortlearn-core, which npm leaves out silently.

import { existsSync } from "node:fs";

if (!existsSync("node_modules/ortlearn-core/trainer.mjs")) {
  console.error("node_modules/ortlearn-core is missing, and the packed file would lack it: run npm install --ignore-scripts first.");
  process.exit(1);
}
