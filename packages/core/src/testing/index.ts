export { type FindServerOptions, findServerBinary, type ServerBinary } from "./find-server.js";
export type { ConfigContext } from "./node-layout.js";
export { testContext, testEvent } from "./test-event.js";
export {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "./test-server.js";
export type { TestServerNode } from "./test-server-node.js";
