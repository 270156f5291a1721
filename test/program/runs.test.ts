/** `tendon runs push` and `pull` as a client uses them, at the real program. */
import { pullCases } from "../client/runs-pull-cases.ts";
import { pushCases } from "../client/runs-push-cases.ts";
import { Place } from "./program.ts";

async function start() {
  const place = await Place.make();
  const served = await place.serve([]);
  const { url, api_key: key } = served.ready;
  return {
    url,
    key,
    [Symbol.asyncDispose]: async () => {
      await served.stop();
      await place[Symbol.asyncDispose]();
    },
  };
}

pushCases("the program", start);
pullCases("the program", start);
