import { load, type FitOptions, type NodeTrainer } from "ortlearn-node";

const options: FitOptions = { epochs: 2, onEpoch: ({ epoch, objective }) => console.log(epoch, objective) };
const trainer: NodeTrainer = await load("folder");
await trainer.fit([[1, 2]], ["yes"], options);
const { score }: { score: number | null } = await trainer.evaluate([[1, 2]], ["yes"]);
const label: string[] = (await trainer.predict([[1, 2]])).label;
await trainer.save("other");
// @ts-expect-error epochs is a number
await trainer.fit([[1, 2]], ["yes"], { epochs: "two" });
export { label, score };
