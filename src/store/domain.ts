/**
 * A domain of the store: its operations as steps for both engines (steps.ts), and the facts that the engines need about them.
 * PostgreSQL runs the hot ones as functions, whose texts stand beside the steps. The types below turn a domain into the asynchronous
 * interface of the callers, so that "go to definition" on `store.robot.observation` leads to the generator with the SQL.
 */
import type { Steps } from "./steps.ts";
import type { StoreBase, StoreDown, Transfer } from "./store.ts";

type Operation = (argument: never) => Steps<unknown>;

/** A module whose exports are operations: `import * as reads from "./reads.ts"`. */
type Operations = Readonly<Record<string, Operation>>;

export interface DomainOf<Reads, Writes> {
  readonly reads: Reads;
  /** Each is one atomic step, durable when it resolves unless `notDurable` names it. */
  readonly writes: Writes;
  /** Atomic, but possibly lost in a crash. */
  readonly notDurable: readonly (keyof Writes)[];
  /** Reads of many rows that must see one state of the database, and may take long. */
  readonly snapshots?: readonly (keyof Reads)[];
  /**
   * Writes that PostgreSQL runs as functions, many in one statement (postgres/migrate.ts). Durable ones and others go in
   * separate statements, so that a hold never waits for the disk.
   */
  readonly hot?: { readonly [K in keyof Writes]?: HotOf<Writes[K]> };
  /** Writes that book a transfer in the ledger; a node remembers the newest ones (postgres/high-water.ts). */
  readonly books?: { readonly [K in keyof Writes]?: BookingOf<Writes[K]> };
}

type Domain = DomainOf<Operations, Operations>;

export type Domains = Readonly<Record<string, Domain>>;

/** The argument of a hot operation as its SQL function reads it: a JSON object without undefined fields. */
export interface Order {
  readonly accountId: string;
  /** The operation's key, which the engine adds. */
  readonly order?: string;
}

/** An operation as a function of PostgreSQL. Its outcome is the text with which the steps end. */
export interface Hot<Argument> {
  /** The body of a PL/pgSQL function of `o jsonb`, the order, that returns text. A repeat must return the same. */
  readonly sql: string;
  /** Numbers that may pass 2^53 become texts. */
  order(argument: Argument): Order;
}

interface Booking<Argument> {
  /** With this outcome the write has booked the transfer. */
  readonly outcome: string;
  transfer(argument: Argument): Transfer;
}

type BookingOf<Write> = Write extends (argument: infer A) => Steps<unknown> ? Booking<A> : never;

type HotOf<Write> = Write extends (argument: infer A) => Steps<unknown> ? Hot<A> : never;

/** The operations of a caller: asynchronous, with an outcome for a store that is down. */
type Asynchronous<Of> = {
  -readonly [K in keyof Of]: Of[K] extends (...argument: infer A) => Steps<infer R>
    ? (...argument: A) => Promise<R | StoreDown>
    : never;
};

export type Slice<D extends Domain> = Asynchronous<D["reads"]> & Asynchronous<D["writes"]>;

export type Slices<D extends Domains> = { readonly [Name in keyof D]: Slice<D[Name]> };

/** An operation with the facts of its domain about it. */
export interface NamedOperation<Argument = never, Result = unknown> {
  readonly name: string;
  /** `domain.operation`, unique among all. */
  readonly key: string;
  readonly steps: (argument: Argument) => Steps<Result>;
  readonly durable: boolean;
  readonly snapshot: boolean;
  readonly hot: Hot<Argument> | undefined;
  readonly booking: Booking<Argument> | undefined;
}

const NOT_WRITTEN = { hot: undefined, booking: undefined };

function readsOf(domain: string, { reads, snapshots = [] }: Domain): NamedOperation[] {
  return Object.entries(reads).map(([name, steps]) => {
    return { name, key: `${domain}.${name}`, steps, durable: true, snapshot: snapshots.includes(name), ...NOT_WRITTEN };
  });
}

function writesOf(domain: string, { writes, notDurable, hot = {}, books = {} }: Domain): NamedOperation[] {
  return Object.entries(writes).map(([name, steps]) => {
    const durable = !notDurable.includes(name);
    return { name, key: `${domain}.${name}`, steps, durable, snapshot: false, hot: hot[name], booking: books[name] };
  });
}

export function everyWrite(domains: Domains): NamedOperation[] {
  return Object.entries(domains).flatMap(([name, domain]) => writesOf(name, domain));
}

/** An engine's way to run an operation. */
export type Run = <A, R>(operation: NamedOperation<A, R>) => (argument: A) => Promise<R | StoreDown>;

/** The interface of the domains on an engine that runs reads with `read` and writes with `write`. */
export function slicesOf<D extends Domains>(domains: D, read: Run, write: Run): Slices<D> {
  const slices = Object.entries(domains).map(([name, domain]) => {
    const reads = readsOf(name, domain).map((operation) => [operation.name, read(operation)] as const);
    const writes = writesOf(name, domain).map((operation) => [operation.name, write(operation)] as const);
    return [name, Object.fromEntries([...reads, ...writes])];
  });
  // `Run` gives each method the type of `Asynchronous`; only `fromEntries` loses the names.
  return Object.fromEntries(slices) as Slices<D>;
}

/** A store with the operations of these domains: `store.robot.observation(...)`. */
export type StoreOf<D extends Domains> = Slices<D> & StoreBase;
