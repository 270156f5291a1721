/** What the frames of each camera become: `image`, or a view of the camera's own. */
import type { Facts } from "./architecture.ts";

type Seen = Pick<Facts, "cameras" | "image" | "views">;

/** Of one camera. */
export interface Picture extends Pick<Facts["image"], "width" | "height" | "resize" | "tokens"> {
  readonly camera: string;
  readonly place?: Facts["image"]["place"] | undefined;
}

/** Neighbours in wire order whose pictures have one size: one input of a graph can take them. */
export interface Group {
  readonly cameras: readonly string[];
  readonly picture: Picture;
  /** The size is that of `image`. */
  readonly usual: boolean;
}

/** Of one view; one that the model has no camera for is as `image` says. */
function pictureOf({ image, views = [] }: Seen, camera: string): Picture {
  const { width, height, resize, place, tokens } = image;
  const usual = { camera, width, height, resize, place, tokens };
  const view = views.find((one) => one.camera === camera);
  if (view === undefined) return usual;
  // A place belongs to the way of resizing that stands beside it.
  return view.resize === undefined ? { ...usual, ...view } : { ...usual, place: undefined, ...view };
}

/** One for each camera, in wire order. */
export function pictures(facts: Seen): Picture[] {
  return facts.cameras.map((camera) => pictureOf(facts, camera));
}

/** Prefix tokens of one frame of every view. */
export function imageTokens(facts: Seen, views: readonly string[] = facts.cameras): number {
  return views.reduce((sum, view) => sum + pictureOf(facts, view).tokens, 0);
}

/** All views in their order. */
export function groups(facts: Seen, views: readonly string[] = facts.cameras): Group[] {
  const found: { cameras: string[]; picture: Picture; usual: boolean }[] = [];
  for (const picture of views.map((view) => pictureOf(facts, view))) {
    const last = found.at(-1);
    if (last !== undefined && sameSize(last.picture, picture)) last.cameras.push(picture.camera);
    else found.push({ cameras: [picture.camera], picture, usual: sameSize(picture, facts.image) });
  }
  return found;
}

/** The one size that several views have; undefined where they differ. */
export function commonSize(facts: Seen, views: readonly string[]): { width: number; height: number } | undefined {
  const [group, ...others] = groups(facts, views);
  return others.length === 0 ? group?.picture : undefined;
}

function sameSize(one: { width: number; height: number }, other: { width: number; height: number }): boolean {
  return one.width === other.width && one.height === other.height;
}
