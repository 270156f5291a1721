/** Reads the certificate anew when its files change. A wrong pair leaves the one in use, and is logged once. */
import { type CertificateFiles, certificateVersion, readCertificate } from "../http/certificate.ts";
import { listenersOf } from "../http/connection-watch.ts";
import type { Listener } from "../http/listen.ts";
import type { Log } from "../std/log.ts";
import { Problem } from "../std/problem.ts";

export class Renewal {
  private busy = false;
  private changed: string | undefined;
  /** The last problem. Every look tries again, since rights and other files change as well. */
  private reported: string | undefined;

  /** `used`: the version of the files that the listener has begun with. */
  constructor(
    private readonly files: CertificateFiles,
    private readonly listener: Pick<Listener, "port" | "renew">,
    private readonly log: Log,
    private used: string,
  ) {}

  /** Called now and then. */
  async look(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      const version = await certificateVersion(this.files);
      // Two files are replaced one after the other: they are read once nothing has changed since the last look.
      const settled = version === this.changed;
      this.changed = version;
      if (version === this.used || !settled) return;
      const failed = await this.renew();
      if (!failed) this.used = version;
      else if (failed.message !== this.reported)
        this.log.error("certificate not changed", { reason: failed.message, now: "the one before stays in use" });
      this.reported = failed?.message;
    } finally {
      this.busy = false;
    }
  }

  private async renew(): Promise<undefined | Problem> {
    const certificate = await readCertificate(this.files);
    if (certificate instanceof Problem) return certificate;
    const sockets = await listenersOf(this.listener.port);
    if (sockets instanceof Problem) return sockets;
    const failed = await this.listener.renew(certificate, sockets);
    if (!failed) this.log.info("certificate changed", { expires: new Date(certificate.expiresMs).toISOString() });
    return failed;
  }
}
