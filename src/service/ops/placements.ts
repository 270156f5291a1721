/** Where each loaded model runs, how many sessions it takes, and which devices were refused before it, for `GET /readyz`. */
import { type Static, Type } from "@sinclair/typebox";
import type { Catalog } from "../../robot/catalog.ts";

export const Placement = Type.Object(
  {
    model: Type.String(),
    device: Type.String({ description: "The device that it runs on; of several their names, with commas." }),
    replicas: Type.Array(Type.String(), { description: "The device of each replica, by its number." }),
    refused: Type.Array(
      Type.Object({
        device: Type.String(),
        reason: Type.String({
          description: "Why: a missing library, or how far its rows are from those of the bundle's parity vectors.",
        }),
      }),
      { description: "Devices that `auto` tried before." },
    ),
    slots: Type.Optional(
      Type.Integer({
        description: "Sessions that it takes at once, on a model with memory; beyond them: `no_replica_free`.",
      }),
    ),
    places: Type.Optional(
      Type.Integer({
        description: "Of these, sessions whose memory lies where it computes; the others are parked in turns.",
      }),
    ),
    slot_bytes: Type.Optional(Type.Integer({ description: "Memory of one session at most." })),
  },
  { title: "Placement" },
);

export function placements(catalog: Pick<Catalog, "models">): Static<typeof Placement>[] {
  return [...catalog.models].flatMap(([id, { model }]) => {
    if (model === undefined) return [];
    const refused = model.refused.map(({ device, reason }) => ({ device, reason: withoutFolders(reason) }));
    const { slots, sessionMemory } = model;
    const { places, slotBytes } = sessionMemory;
    const memory = slots === 0 ? {} : { slots, places, slot_bytes: slotBytes };
    return [{ model: id, device: model.device, replicas: [...model.devices], refused, ...memory }];
  });
}

/** No response carries a path: of a file its name is left. `tendon doctor` and the log have the whole text. */
export function withoutFolders(text: string): string {
  return text.replace(/(^|[\s"'(=:])(?:\/[^\s"'/:]+)+\/([^\s"'/:]+)/g, "$1$2");
}
