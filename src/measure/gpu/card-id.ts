/**
 * Which card of NVIDIA's tool a device of CUDA is. The two number cards apart: the tool by their place on the bus, CUDA the fastest first
 * unless CUDA_DEVICE_ORDER says otherwise, and only those of CUDA_VISIBLE_DEVICES. Figures of another card are worse than none, so
 * where the variables do not settle it there is none, and a reason.
 */
import { type CudaNumbering, cudaNumbering } from "../../config/environment.ts";
import { type ListedCard, listedCards, TOOL } from "./smi.ts";

export interface FoundCard {
  /** What the tool takes for `--id`; undefined where it is not known. */
  readonly id: string | undefined;
  /** What the driver calls it; known too where several could be meant and all are alike. */
  readonly name: string | undefined;
  /** Why it is not known. */
  readonly why: string | undefined;
}

/** undefined for a device that is no card of NVIDIA. */
export async function cardOfDevice(
  device: string,
  { tool = TOOL, numbering = cudaNumbering() }: { readonly tool?: string; readonly numbering?: CudaNumbering } = {},
): Promise<FoundCard | undefined> {
  const place = /^(?:cuda|tensorrt):(\d+)$/.exec(device)?.[1];
  return place === undefined ? undefined : foundIn(await listedCards(tool), numbering, place);
}

function foundIn(cards: readonly ListedCard[], { visible, isByBus }: CudaNumbering, place: string): FoundCard {
  const [first] = cards;
  const name = cards.every((card) => card.name === first?.name) ? first?.name : undefined;
  const unknown = (why: string): FoundCard => ({ id: undefined, name, why });
  if (first === undefined) return unknown("no nvidia-smi tells of this device");
  const entry = visible === undefined ? place : (visible.split(",")[Number(place)]?.trim() ?? "");
  if (entry.startsWith("MIG-")) return unknown("it is a part of a card (MIG), of which nvidia-smi has no power");
  if (entry.startsWith("GPU-")) {
    const [one, ...more] = cards.filter(({ uuid }) => uuid.startsWith(entry));
    return one !== undefined && more.length === 0 ? known(one) : unknown(`not one card has the UUID ${entry}`);
  }
  if (!/^\d+$/.test(entry)) return unknown(`CUDA_VISIBLE_DEVICES has no card at place ${place}`);
  const one = cards.find(({ index }) => index === entry);
  if (one === undefined) return unknown(`nvidia-smi has no card ${entry}`);
  if (isByBus || cards.length === 1) return known(one);
  return unknown(
    `of ${cards.length} cards it is known only with CUDA_DEVICE_ORDER=PCI_BUS_ID, or by UUID in CUDA_VISIBLE_DEVICES`,
  );
}

function known({ uuid, name }: ListedCard): FoundCard {
  return { id: uuid, name, why: undefined };
}
