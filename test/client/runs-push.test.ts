import { FakeRuns } from "./fake-runs.ts";
import { pushCases } from "./runs-push-cases.ts";

pushCases("the fake service", async () => new FakeRuns());
