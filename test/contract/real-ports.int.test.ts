import { portsContract } from "./ports-contract.js";
import { openRealWorld } from "./real-world.js";

portsContract("a real nats-server", openRealWorld);
