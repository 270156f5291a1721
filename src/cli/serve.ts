/** `tendon serve`: reads the configuration, runs the service until a signal, and says when it is ready. */
import { DEV_EMAIL } from "../account/dev.ts";
import { allowConnections } from "../config/environment.ts";
import { DEFAULTS, type ServeConfig, serveConfig } from "../config/serve.ts";
import { discard, prepare } from "../service/models.ts";
import { LLM_ADVICE, planProviders } from "../service/providers.ts";
import type { Ready } from "../service/server.ts";
import { openStore } from "../service/store.ts";
import { sleep, systemClock } from "../std/clock.ts";
import { EXIT, Problem } from "../std/problem.ts";
import type { Command, CommandLine } from "./frame/command.ts";
import { print, printJson } from "./frame/print.ts";
import { CONFIG_FLAG, DATA_FLAG, flagsOf, MODELS_FLAG } from "./frame/settings.ts";

/** Bundles whose digests are remembered are verified by then; for others the listeners do not wait. */
const BEGUN_MS_MAX = 50;

export const serve: Command = {
  name: "serve",
  summary:
    "Serve robot models and language models over HTTP, robot models over WebSocket too. TLS: TENDON_TLS_CERT and TENDON_TLS_KEY (PEM files).",
  flags: {
    host: { value: "HOST", about: `Address to listen on (default ${DEFAULTS.host}; TENDON_HOST).` },
    port: { value: "N", about: `Port to listen on, 0 for a free one (default ${DEFAULTS.port}; TENDON_PORT).` },
    data: DATA_FLAG,
    models: MODELS_FLAG,
    config: CONFIG_FLAG,
    dev: {
      about:
        "For one person: makes an account and a key once, prints them, allows reference bundles and the device echo.",
    },
    json: { about: "One JSON object per line on standard output; the first says that the service is ready." },
  },
  run: (given) => serveWith(given, openStore),
};

/** `serve` on the store that `open` opens; a measurement gives it another one. */
export async function serveWith(given: CommandLine, open: typeof openStore): Promise<number | Problem> {
  const config = await serveConfig(flagsOf(given, given.on("dev")));
  if (config instanceof Problem) return config;
  const providers = planProviders(config, systemClock);
  if (providers instanceof Problem) return providers;
  // Here, since nothing has begun yet.
  if (providers.size > 0) await allowConnections(config.configPath);
  // A signal now ends the service in order, also while it still loads.
  const stopped = stopSignal();
  const preparation = prepare(config);
  // Another node may migrate the schema for an hour. A migration that this process has begun ends with it: all or nothing.
  const store = await Promise.race([open(config, "serve"), stopped]);
  if (store === "stopped" || store instanceof Problem) {
    await discard(preparation);
    return store === "stopped" ? EXIT.done : store;
  }
  const begun = preparation.begin();
  // The models load on their own threads, while this one loads by far the largest part of the program.
  await Promise.race([begun, sleep(systemClock, BEGUN_MS_MAX)]);
  const { Server } = await import("../service/server.ts");
  const server = new Server(config, store, providers, preparation, begun);
  try {
    const broken = server.broken();
    const outcome = await Promise.race([server.start(), stopped, broken]);
    if (outcome instanceof Problem) return outcome;
    if (outcome !== undefined && outcome !== "stopped") await sayReady(config, outcome);
    const end = await Promise.race([stopped, broken]);
    return end === "stopped" ? EXIT.done : end;
  } finally {
    await server.stop();
  }
}

/** Resolves at the first SIGTERM or SIGINT. */
function stopSignal(): Promise<"stopped"> {
  return new Promise((resolve) => {
    // Later signals do nothing: Ctrl-C often comes twice, and running requests are still answered. Shutdown is bounded in time.
    process.on("SIGTERM", () => resolve("stopped"));
    process.on("SIGINT", () => resolve("stopped"));
  });
}

async function sayReady(config: ServeConfig, { url, opsUrl, catalog, dev, linkToken }: Ready): Promise<void> {
  const operatorLink = linkToken === undefined ? undefined : `${url}/welcome?token=${linkToken}`;
  const { models, ids } = catalog;
  const marked = [...models.values()].flatMap(({ manifest: { id }, warning }) =>
    warning === undefined ? [] : [{ id, warning }],
  );
  if (config.json) {
    await printJson({
      event: "ready",
      url,
      ops_url: opsUrl,
      models: ids,
      llm: [...config.llm.keys()],
      reference: marked.map(({ id }) => id),
      ...(dev ? { account: dev.accountId, api_key: dev.key } : {}),
      ...(operatorLink ? { operator_link: operatorLink } : {}),
    });
    return;
  }
  const use = dev ? `sets the password of ${DEV_EMAIL}` : "makes the operator's account";
  const lines = [
    `tendon serves ${[...ids, ...config.llm.keys()].join(", ")}`,
    `  url      ${url}`,
    `  metrics  ${opsUrl}/metrics`,
    ...(dev ? [`  account  ${DEV_EMAIL} (${dev.accountId})`, `  key      ${dev.key}`] : []),
    operatorLink ? `  sign in  ${operatorLink} (once, within 24 hours: ${use})` : `  sign in  ${url}/sign-in`,
    ...marked.map(({ id, warning }) => `  ${id}: ${warning}`),
    ...(config.llm.size === 0 ? withoutLanguageModels(config) : []),
  ];
  await print(lines.join("\n"));
}

function withoutLanguageModels({ configPath }: ServeConfig): string[] {
  return [
    "  No language model is configured: requests for one are answered with unconfigured. For a first one, put these",
    `  lines into ${configPath}, and start again:`,
    ...LLM_ADVICE.map((line) => `    ${line}`),
  ];
}
