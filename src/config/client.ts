/** What a client command (`act`, `status`, …) takes from the environment. It wins over the credentials file. */
import { join } from "node:path";
import { type Environment, environment } from "./environment.ts";
import { folders } from "./folders.ts";

export function clientConfig(env: Environment = environment()): {
  apiKey: string | undefined;
  baseUrl: string | undefined;
  credentialsPath: string;
} {
  return {
    apiKey: env.TENDON_API_KEY || undefined,
    baseUrl: env.TENDON_BASE_URL || undefined,
    credentialsPath: join(folders(env).config, "credentials.json"),
  };
}
