// Keeps runs up to date with the journal: asks for the records after the last one it has.
import { useEffect, useState } from "../base/html.js";
import { about, get } from "../base/api.js";
import { onChange } from "../base/live.js";
import { Run } from "./fold.js";
import { standingOf } from "./state.js";

/**
 * A run that follows the journal until `end`. `header` and `error` are set as they come.
 * With `marks`, results come with what tells whether they are the same, and times are not
 * looked into.
 */
export class Source {
  constructor(id, marks = false) {
    this.run = new Run(id);
    this.marks = marks ? { marks: 1 } : {};
    this.isTimed = !marks;
    this.header = null;
    this.error = null;
    this.timing = null; // where the time went, of a run that no process has
    this.timed = 0; // the last record that it counts
    this.listeners = new Set();
    this.wanted = false;
    this.busy = false;
    this.heardAt = performance.now();
    this.unhook = onChange(() => this.read());
    this.read();
  }

  subscribe = (listener) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  end() {
    this.ended = true;
    this.unhook();
    this.listeners.clear();
  }

  async read() {
    this.wanted = true;
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.wanted && !this.ended) {
        this.wanted = false;
        await this.catchUp();
      }
      this.error = null;
    } catch (error) {
      this.error = error;
    } finally {
      this.busy = false;
      this.tell();
    }
  }

  async catchUp() {
    for (let more = true; more && !this.ended;) {
      const page = await get(about("records", this.run.id, { after: this.run.last, ...this.marks }));
      if (page.records.length) this.heardAt = performance.now();
      this.run.add(page);
      more = page.more;
      this.tell();
    }
    this.header = await get(about("run", this.run.id));
    this.run.loaded = true;
    this.tell();
    await this.time();
  }

  /** The bars and the critical path of a run at rest: while it goes on, both would change. */
  async time() {
    if (this.isLive) this.timing = null;
    else if (this.isTimed && this.timed !== this.run.last) {
      const { last } = this.run;
      const found = await get(about("timing", this.run.id));
      this.timing = { ...found, bars: new Map(Object.entries(found.bars)) }; // names may be any
      this.timed = last;
    }
  }

  /** running, asking, interrupted, or how it ended. */
  get standing() {
    return standingOf(this.header?.summary) ?? this.run.status ?? "running";
  }

  /** Whether a process has the run. */
  get isLive() {
    return ["running", "asking"].includes(this.header?.summary.standing ?? "running");
  }

  /** Seconds of the run that have passed, also while nothing happens in it. */
  get now() {
    return this.run.now + (this.isLive ? (performance.now() - this.heardAt) / 1000 : 0);
  }

  tell() {
    this.listeners.forEach((listener) => listener());
  }
}

/** The run `id`, followed while the component is shown. */
export function useSource(id, marks = false) {
  const [source, setSource] = useState(null);
  useEffect(() => {
    const mine = new Source(id, marks);
    setSource(mine);
    return () => mine.end();
  }, [id, marks]);
  return source;
}
