/** Where each loaded model runs, and which devices were refused before it, for `GET /readyz`. */
import { type Static, Type } from "@sinclair/typebox";
import type { Catalog } from "../../robot/catalog.ts";

export const Placement = Type.Object(
  {
    model: Type.String(),
    device: Type.String({ description: "The device that it runs on." }),
    refused: Type.Array(
      Type.Object({
        device: Type.String(),
        reason: Type.String({
          description: "Why: a missing library, or how far its rows are from those of the bundle's parity vectors.",
        }),
      }),
      { description: "Devices that `auto` tried before." },
    ),
  },
  { title: "Placement" },
);

export function placements(catalog: Pick<Catalog, "models">): Static<typeof Placement>[] {
  return [...catalog.models].flatMap(([id, { model }]) => {
    if (model === undefined) return [];
    const refused = model.refused.map(({ device, reason }) => ({ device, reason: withoutFolders(reason) }));
    return [{ model: id, device: model.device, refused }];
  });
}

/** No response carries a path: of a file its name is left. `tendon doctor` and the log have the whole text. */
function withoutFolders(text: string): string {
  return text.replace(/(^|[\s"'(=:])(?:\/[^\s"'/:]+)+\/([^\s"'/:]+)/g, "$1$2");
}
