exports.load = async (...args) => (await import("./index.mjs")).load(...args);
