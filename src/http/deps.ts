/** What the transport works with: the parts of the running service that every route needs, and no product's. */
import type { Unpaid } from "../charge/unpaid.ts";
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import type { Failure } from "../std/failure.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Counter } from "../std/metrics.ts";
import type { Networks } from "../std/networks.ts";
import { Permits } from "../std/quota.ts";
import type { Bodies } from "./bodies.ts";

export interface HttpDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  /** The budget of request bodies in memory. */
  readonly ingress: Ingress;
  /** Reads large JSON bodies beside the event loop. */
  readonly bodies: Bodies;
  /** Answered requests by `route` and `status`. */
  readonly requests: Counter<"route" | "status">;
  readonly authenticate: Authenticate;
  /** The budget of work that no charge pays for, by account. */
  readonly unpaid: Unpaid;
  /** Networks of proxies whose `X-Forwarded-*` is believed. */
  readonly proxies: Networks;
}

/** The account of a valid key. */
export interface Principal {
  readonly accountId: string;
  readonly keyPublicId: string;
}

/**
 * Reads an `Authorization` header. Failures: `missing_api_key`, `invalid_api_key`, `auth_unavailable`, and `rate_limited` where
 * unknown keys are counted by network. A socket calls it again without a network: its key may have been revoked since.
 */
export type Authenticate = (authorization: string | null, network?: () => string) => Promise<Principal | Failure>;

/** The budget of memory for request bodies and messages, in bytes. */
export class Ingress extends Permits {
  /** One owner may take `LIMITS.ingressOwnerShare` of it, so that others always find room. */
  constructor(bytesMax: number = LIMITS.ingressBytesMax) {
    super(bytesMax, bytesMax * LIMITS.ingressOwnerShare);
  }

  get bytes(): number {
    return this.size;
  }
}
