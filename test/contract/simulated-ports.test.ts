import { portsContract } from "./ports-contract.js";
import { openSimulatedWorld } from "./simulated-world.js";

portsContract("the simulated server", openSimulatedWorld);
