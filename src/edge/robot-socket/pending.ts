/** Messages of one connection whose work has not begun: bounded in bytes and in number (contract section 3). */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";

export class Pending {
  private bytes = 0;
  private messages = 0;

  /** Counts one message, also if that is too many: `socket_overflow`. */
  take(bytes: number): Failure | undefined {
    this.bytes += bytes;
    this.messages += 1;
    const { socketPendingBytesMax, socketPendingMessagesMax } = LIMITS;
    if (this.bytes <= socketPendingBytesMax && this.messages <= socketPendingMessagesMax) return undefined;
    const most = `${socketPendingBytesMax} bytes or ${socketPendingMessagesMax} messages`;
    return new Failure(ROBOT.socket_overflow, `more than ${most} wait to be worked on; send less at once`);
  }

  give(bytes: number, messages: number): void {
    this.bytes -= bytes;
    this.messages -= messages;
  }
}
