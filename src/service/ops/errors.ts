/** Failures of the control socket, which the operator's commands use. */
import { row, table } from "../../std/failure.ts";

export const CONTROL = table({
  device_unknown: row(404, { http: "No replica was placed on this device; the message lists the devices in use." }),
  device_not_drained: row(409, {
    http: "A model has no replica that works elsewhere, a model is loading, or the device is lost. Nothing has changed.",
  }),
  device_not_resumed: row(409, {
    http: "The replicas on the device are out already, or the device is lost; a start of the service brings them back.",
  }),
});
