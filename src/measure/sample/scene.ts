/**
 * The scene that `tendon sample` draws, as SVG: a wooden table, two arms and a red block, seen by three cameras.
 *
 * Only a picture for trying things out: no kinematics, and nothing in it is a photograph of anything.
 */
import { RandomStream } from "../../std/random.ts";

/** The cameras of the drawn scene, in the order of the wire. */
export const VIEWS = ["top", "left", "right"] as const;
export type View = (typeof VIEWS)[number];

/** Pixels of a drawn frame, as the robot's cameras send them. */
export const FRAME_PX = { width: 640, height: 360 } as const;

/** Numbers in [0, 1) that depend on `key` alone: the same key draws the same picture everywhere. */
function unitStream(key: string): () => number {
  const stream = new RandomStream(key);
  return () => stream.word() / 2 ** 32;
}

/** Pixels from the left and from the top. */
type Point = readonly [x: number, y: number];

/** Table coordinates (u to the right, v towards the camera, both 0 to 1) to pixels, with perspective. */
type Surface = (u: number, v: number) => Point;

/** The table between its four corners. */
function surface(farLeft: Point, farRight: Point, nearLeft: Point, nearRight: Point): Surface {
  const between = (p: Point, q: Point, share: number): Point => [
    p[0] + (q[0] - p[0]) * share,
    p[1] + (q[1] - p[1]) * share,
  ];
  const ratio = (farRight[0] - farLeft[0]) / (nearRight[0] - nearLeft[0]);
  return (u, v) => {
    // Equal steps on the table shrink with distance; s = 1 is the near edge.
    const s = (v * ratio) / (v * ratio + 1 - v);
    return between(between(farLeft, nearLeft, s), between(farRight, nearRight, s), u);
  };
}

function polygon(points: readonly Point[], attributes: string): string {
  return `<polygon points="${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")}" ${attributes}/>`;
}

function line(from: Point, to: Point, attributes: string): string {
  const [start, end] = [from, to].map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return `<path d="M${start}L${end}" ${attributes}/>`;
}

/** The table: staggered planks, each with its own tone and grain. */
function planks(at: Surface, rows: number, random: () => number): string {
  const parts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const [v0, v1] = [row / rows, (row + 1) / rows];
    let u = -random() * 0.15;
    while (u < 1) {
      const end = u + 0.1 + random() * 0.2;
      const [a, b] = [Math.max(0, u), Math.min(1, end)];
      const tone = random();
      const fill = `rgb(${Math.round(188 + 42 * tone)},${Math.round(146 + 44 * tone)},${Math.round(104 + 44 * tone)})`;
      parts.push(
        polygon([at(a, v0), at(b, v0), at(b, v1), at(a, v1)], `fill="${fill}" stroke="#a87c52" stroke-width=".5"`),
      );
      for (let grain = 0; grain < 3; grain++) {
        const v = v0 + (v1 - v0) * (0.15 + 0.7 * random());
        const [from, to] = [at(a, v), at(b, v + (random() - 0.5) * 0.01)];
        const opacity = (0.1 + 0.35 * random()).toFixed(2);
        parts.push(line(from, to, `stroke="#8d6136" stroke-opacity="${opacity}" stroke-width=".9"`));
      }
      u = end;
    }
  }
  return parts.join("");
}

/** A box standing on the table around (u, v): top, front and its shadow. */
function block(at: Surface, u: number, v: number, size: number, heightPx: number): string {
  const corner = (du: number, dv: number): Point => at(u + du * size, v + dv * size * 1.3);
  const base = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)] as const;
  const lifted = ([x, y]: Point): Point => [x, y - heightPx];
  const shadow = base.map(([x, y]): Point => [x + heightPx * 0.5, y + heightPx * 0.2]);
  const side = (p: Point, q: Point, fill: string) => polygon([p, lifted(p), lifted(q), q], `fill="${fill}"`);
  return [
    polygon(shadow, 'fill="#3a2412" fill-opacity=".4"'),
    side(base[0], base[3], "#8f1420"),
    side(base[1], base[2], "#7a101b"),
    polygon([lifted(base[3]), lifted(base[2]), base[2], base[3]], 'fill="#a81a28"'),
    polygon(base.map(lifted), 'fill="#d22b3a" stroke="#ee7680" stroke-width="1"'),
  ].join("");
}

/** An arm as the top camera sees it: column, two links and a gripper with two fingers. Angles in radians, 0 pointing away from the camera. */
function arm(base: Point, angles: readonly [number, number, number], opening: number): string {
  const [a, b, c] = angles;
  const towards = ([x, y]: Point, angle: number, px: number): Point => [
    x + px * Math.sin(angle),
    y - px * Math.cos(angle),
  ];
  const elbow = towards(base, a, 92);
  const wrist = towards(elbow, b, 74);
  const link = (p: Point, q: Point, width: number, colour: string) =>
    line(p, q, `stroke="${colour}" stroke-width="${width}" stroke-linecap="round"`);
  const joint = ([x, y]: Point, radius: number, attributes: string) =>
    `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${radius}" ${attributes}/>`;
  const finger = (side: number): string => {
    const spread = side * (5 + 11 * opening);
    const from: Point = [wrist[0] + spread * Math.cos(c), wrist[1] + spread * Math.sin(c)];
    return link(wrist, from, 9, "#34363a") + link(from, towards(from, c, 30), 7, "#4a4d52");
  };
  const shade = `<g transform="translate(16 10)" opacity=".28">${link(base, elbow, 30, "#241608")}${link(elbow, wrist, 24, "#241608")}</g>`;
  return [
    shade,
    `<rect x="${(base[0] - 34).toFixed(1)}" y="${(base[1] - 22).toFixed(1)}" width="68" height="60" rx="8" fill="#1c1d20" stroke="#3b3d42"/>`,
    link(base, elbow, 30, "#26282c"),
    link(base, elbow, 16, "#3b3e44"),
    finger(-1),
    finger(1),
    link(elbow, wrist, 24, "#222428"),
    link(elbow, wrist, 12, "#383b40"),
    joint(elbow, 17, 'fill="#2d3035" stroke="#62666e"'),
    joint(wrist, 12, 'fill="#2d3035" stroke="#62666e"'),
    joint(elbow, 5, 'fill="#b9bdc4"'),
  ].join("");
}

/** What a wrist camera sees of the gripper: two dark fingers from below. */
function fingers(opening: number, lean: number): string {
  const gap = 14 + 66 * opening;
  const one = (side: number): string => {
    const x = 320 + lean + side * gap;
    const at = (dx: number, y: number): Point => [x + side * dx, y];
    const outline = [at(66, 362), at(20, 262), at(2, 226), at(-6, 268), at(-2, 362)];
    const light = [at(14, 268), at(3, 236), at(-2, 270), at(4, 330)];
    return polygon(outline, 'fill="#191a1d" stroke="#3c3f45" stroke-width="2"') + polygon(light, 'fill="#4b4f57"');
  };
  return `${one(-1) + one(1)}<rect x="214" y="342" width="212" height="20" fill="#0f1012"/>`;
}

function topView(random: () => number): string {
  const at = surface([82, 88], [532, 96], [-30, 372], [632, 372]);
  const [u, v] = [0.4 + 0.2 * random(), 0.3 + 0.2 * random()];
  return [
    planks(at, 13, random),
    '<rect x="206" y="318" width="220" height="42" rx="4" fill="#c7ccd2" stroke="#878d95"/>',
    block(at, u, v, 0.055, 26),
    arm([142, 340], [0.25 * random(), 0.2 + 0.5 * random(), 0.2 + 0.5 * random()], random()),
    arm([492, 340], [-0.25 * random(), -0.2 - 0.5 * random(), -0.2 - 0.5 * random()], random()),
    '<path d="M120 226C58 240 44 300 92 362" stroke="#0b0b0c" stroke-width="3" fill="none"/>',
    '<path d="M520 226C584 244 598 308 540 362" stroke="#0b0b0c" stroke-width="3" fill="none"/>',
  ].join("");
}

function wristView(side: -1 | 1, random: () => number): string {
  const at = surface([70 + 30 * side, 152], [590 + 30 * side, 152], [-320, 372], [960, 372]);
  const u = 0.5 - side * (0.04 + 0.08 * random());
  return [
    planks(at, 11, random),
    block(at, u, 0.35 + 0.2 * random(), 0.07, 74),
    `<ellipse cx="${320 - side * 150}" cy="210" rx="60" ry="16" fill="#2b2118" fill-opacity=".3"/>`,
    `<path d="M${320 - side * 420} 120L${320 - side * 180} 205" stroke="#26282c" stroke-width="38" stroke-linecap="round"/>`,
    `<path d="M${320 - side * 180} 205l${side * 34} 18m${side * -34} -18l${side * 30} -8" stroke="#3d4046" stroke-width="10" stroke-linecap="round"/>`,
    fingers(0.2 + 0.7 * random(), side * 12),
  ].join("");
}

/** One camera's view of the scene, as an SVG document without text or scripts. */
export function sceneSvg(view: View, seed: number): string {
  const random = unitStream(`scene/${seed}/${view}`);
  const { width, height } = FRAME_PX;
  const inside = view === "top" ? topView(random) : wristView(view === "left" ? -1 : 1, random);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" fill="none">`,
    '<defs><linearGradient id="wall" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#16181b"/><stop offset="1" stop-color="#060607"/></linearGradient>',
    '<radialGradient id="lamp" cx=".45" cy=".35" r=".8"><stop offset="0" stop-color="#fff" stop-opacity=".16"/><stop offset="1" stop-color="#000" stop-opacity=".28"/></radialGradient></defs>',
    `<rect width="${width}" height="${height}" fill="url(#wall)"/>`,
    '<path d="M300 0v90M470 0v96" stroke="#2a2d31" stroke-width="5"/>',
    inside,
    `<rect width="${width}" height="${height}" fill="url(#lamp)"/>`,
    "</svg>",
  ].join("");
}
