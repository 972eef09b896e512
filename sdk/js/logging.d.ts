import type { Json } from "./index.js";

export class EventLog {
  constructor(path: string, actor: string, incarnation?: number);
  readonly actor: string;
  readonly incarnation: number;
  event(kind: string, fields?: Record<string, Json | undefined>): void;
  start(): void;
  send(to: string, type: string, payload?: string, fields?: Json): string;
  receive(sender: string | null, id: string | null, type: string, payload?: string, fields?: Json): void;
  state(state: Json): void;
  violation(fingerprint: string, affected?: Iterable<string>): void;
  close(): void;
}
