/**
 * The surfaces of the products, a line each; build.ts gives each the parts of the service that it asks for. The documentation has them in
 * the order of their names here. A product's records are in records.ts, their tables are in store/schema.ts.
 */
export { llm } from "../llm/http/routes.ts";
export { robotHttp as chat } from "../robot/http/routes.ts";
export { robotSocket as episodes } from "../robot/socket/upgrade.ts";
export { runs } from "../runs/http/routes.ts";
