/** The surfaces of a service, each with its own part of what there is. */
import type { HttpDeps } from "../edge/http/deps.ts";
import type { Surface } from "../edge/http/surface.ts";
import { llm } from "../edge/llm/models.ts";
import { type OauthDeps, oauth } from "../edge/oauth/oauth.ts";
import { type HealthDeps, health } from "../edge/ops/health.ts";
import type { OpsDeps } from "../edge/ops/metrics.ts";
import type { PagesDeps } from "../edge/pages/page.ts";
import { pages } from "../edge/pages/routes.ts";
import { robotHttp } from "../edge/robot-http/routes.ts";
import type { RobotSocketDeps } from "../edge/robot-socket/deps.ts";
import { robotSocket } from "../edge/robot-socket/upgrade.ts";

/** Everything that the surfaces need together. */
export type Parts = HttpDeps & RobotSocketDeps & OauthDeps & PagesDeps & HealthDeps & OpsDeps;

/** `silentSeconds`: of the sockets. */
export function surfacesOf(parts: Parts, silentSeconds?: number): Surface[] {
  return [
    robotHttp({ robot: parts, starts: parts.starts.chat }),
    robotSocket(parts, silentSeconds),
    llm(),
    oauth(parts),
    pages(parts),
    health(parts),
  ];
}
