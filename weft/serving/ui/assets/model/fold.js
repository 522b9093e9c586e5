// A run, folded from its records in constant time each. Draws nothing and asks for nothing.
import { isSubstituted } from "./state.js";

const TEXT_BUDGET = 8_000_000; // characters of streamed text kept for the whole run
const LONG_TAIL = 20_000;
const SHORT_TAIL = 300;
const BUSY = new Set(["working", "asking", "delayed"]);
const ENDED = new Set(["succeeded", "failed", "skipped", "cancelled"]);
const THREADS = new Set(["think", "thread"]);

class Node {
  constructor(info, born) {
    this.id = info.id;
    this.kind = info.kind;
    this.sources = info.sources;
    this.resource = info.resource;
    this.parent = null;
    this.children = [];
    this.depth = 0;
    this.name = info.id;
    this.state = "queued";
    this.born = born;
    this.phases = []; // [doing, from, to or null, whether it came to nothing], in seconds
    this.attempts = 0;
    this.tokens = [0, 0];
    this.money = 0;
    this.streamed = 0;
    this.text = "";
    this.textLost = false;
    this.calls = new Map(); // what open model calls have streamed: call -> {text, reasoning}
    this.logs = [];
    this.seqs = []; // the records that the panel reads in full
    this.question = null;
    this.failure = null;
    this.value = ""; // its beginning
    this.mark = ""; // the same for the same value, where that was asked for
    this.via = "";
    this.recalled = false;
    this.ended = null;
    this.onces = new Map(); // calls that must not be repeated: what is known of each, "" at first
    this.inside = { total: 0, ended: 0, failed: 0, working: 0, asking: 0, substituted: 0, dropped: 0 };
  }
  get isEnded() {
    return ENDED.has(this.state);
  }
  get began() {
    return this.phases.length ? this.phases[0][1] : null;
  }
  /** Seconds of its own work, and of waiting for what it appended. */
  spent(doing, now) {
    return this.phases.reduce(
      (sum, [what, from, to]) => (what === doing ? sum + (to ?? now) - from : sum),
      0,
    );
  }
}

/** In which of the counts of what is inside a scope a node is. */
const standing = (state, via) => ({
  ended: ENDED.has(state),
  working: BUSY.has(state),
  failed: state === "failed",
  asking: state === "asking",
  substituted: isSubstituted(state, via),
  dropped: state === "skipped" || state === "cancelled",
});

/** How many nodes of a run, or inside one of it, are in each of those counts. */
export function counts(run) {
  const found = { total: run.nodes.size, ...standing("") };
  for (const node of run.roots) {
    const own = standing(node.state, node.via);
    for (const name in own) found[name] += node.inside[name] + own[name];
  }
  return found;
}

/** Feed it pages of records with `add`; `changes` counts them. */
export class Run {
  constructor(id) {
    this.id = id;
    this.flow = "";
    this.wall = "";
    this.nodes = new Map();
    this.roots = [];
    this.limits = {};
    this.status = null;
    this.reasons = [];
    this.budgets = [];
    this.parts = 1;
    this.now = 0;
    this.last = 0;
    this.tokens = [0, 0, 0];
    this.money = 0;
    this.texts = 0;
    this.asking = new Set();
    this.thinks = 0;
    this.onces = 0; // calls that must not be repeated
    this.risky = new Set(); // the nodes that made them
    this.grown = 0; // changes when the graph does
    this.changes = 0;
    this.loaded = false;
  }

  add({ records, last }) {
    for (const record of records) this.take(record);
    this.last = Math.max(this.last, last);
    this.changes += 1;
  }

  take(record) {
    this.now = Math.max(this.now, record.at_s);
    const general = GENERAL[record.event];
    if (general) general(this, record);
    else {
      const node = this.nodes.get(record.node);
      if (node) OF_NODE[record.event]?.(this, node, record);
    }
  }

  grow(infos, at) {
    for (const info of infos) {
      if (this.nodes.has(info.id)) continue;
      const node = new Node(info, at);
      const parent = info.parent === null ? undefined : this.nodes.get(info.parent);
      this.nodes.set(node.id, node);
      (parent ? parent.children : this.roots).push(node);
      if (parent) {
        node.parent = parent;
        node.depth = parent.depth + 1;
        node.name = info.id.startsWith(parent.id)
          ? info.id.slice(parent.id.length).replace(/^\//, "")
          : info.id;
        for (let above = parent; above; above = above.parent) above.inside.total += 1;
      }
      if (THREADS.has(node.kind)) this.thinks += 1;
    }
    this.grown += 1;
  }

  enter(node, state, doing, at) {
    this.leave(node, at, false);
    if (doing) node.phases.push([doing, at, null, false]);
    this.become(node, state);
    node.ended = null;
  }

  leave(node, at, failed) {
    const phase = node.phases.at(-1);
    if (!phase || phase[2] !== null) return;
    phase[2] = at;
    phase[3] = failed;
  }

  /** `via`: what stands in for its own work. */
  become(node, state, via = "") {
    const before = standing(node.state, node.via);
    if (node.state === state && node.via === via) return;
    Object.assign(node, { state, via });
    if (state === "asking") this.asking.add(node);
    else this.asking.delete(node);
    const after = standing(state, via);
    for (let above = node.parent; above; above = above.parent)
      for (const name in after) above.inside[name] += after[name] - before[name];
  }

  /** The end of what a node or a call streamed: long while the run's budget for texts lasts. */
  join(before, text, note) {
    const most = this.texts < TEXT_BUDGET ? LONG_TAIL : SHORT_TAIL;
    const whole = before + text;
    const found = whole.length > most ? whole.slice(-most) : whole;
    if (found.length < whole.length) note.textLost = true;
    this.texts += found.length - before.length;
    return found;
  }
}

const GENERAL = {
  RunStarted(run, record) {
    Object.assign(run, { flow: record.flow, wall: record.wall, limits: record.limits });
    run.grow(record.nodes, record.at_s);
  },
  GraphGrew(run, record) {
    run.grow(record.nodes, record.at_s);
  },
  RunResumed(run, record) {
    Object.assign(run, { parts: record.part, status: null, reasons: [] });
    for (const node of run.nodes.values())
      if (!node.isEnded) {
        run.leave(node, record.at_s, true);
        run.become(node, "queued");
        node.question = null;
      }
  },
  BudgetReached(run, record) {
    run.budgets.push(record);
  },
  RunFinished(run, record) {
    Object.assign(run, { status: record.status, reasons: record.reasons });
  },
};

const keep = (node, record) => node.seqs.push(record.seq);

const OF_NODE = {
  NodeStarted(run, node, record) {
    node.attempts = Math.max(node.attempts, record.attempt);
    run.enter(node, "working", "work", record.at_s);
  },
  NodeWaiting(run, node, record) {
    run.enter(node, "waiting", "children", record.at_s);
  },
  NodeStreamed(run, node, record) {
    node.streamed += record.tokens;
    node.text = run.join(node.text, record.text, node);
  },
  NodeLogged(run, node, record) {
    if (node.logs.length < 200) node.logs.push([record.at_s, record.text]);
  },
  BreakerChanged(run, node, record) {
    keep(node, record);
    const text = `circuit breaker of the ${record.kind} ${record.name} is ${record.state}: ${record.reason}`;
    if (node.logs.length < 200) node.logs.push([record.at_s, text]);
  },
  NodeSpent(run, node, { usage }) {
    for (const one of [node, run]) {
      one.tokens[0] += usage.prompt_tokens;
      one.tokens[1] += usage.completion_tokens;
      one.money += usage.money;
    }
    run.tokens[2] += usage.cached_tokens;
  },
  NodeDecoded: (run, node, record) => keep(node, record),
  NodeDenoised: (run, node, record) => keep(node, record),
  JoinDecided: (run, node, record) => keep(node, record),
  NodeRepairing: (run, node, record) => keep(node, record),
  NodeRetrying(run, node, record) {
    keep(node, record);
    run.leave(node, record.at_s, true);
    run.enter(node, "delayed", "delay", record.at_s);
  },
  NodeRerouted(run, node, record) {
    keep(node, record);
    run.leave(node, record.at_s, true);
    run.enter(node, "waiting", "children", record.at_s);
  },
  HumanAsked(run, node, record) {
    keep(node, record);
    node.question = { seq: record.seq, text: record.question };
    run.enter(node, "asking", "person", record.at_s);
  },
  HumanAnswered(run, node, record) {
    keep(node, record);
    node.question = null;
    run.enter(node, "working", "work", record.at_s);
  },
  NodeFinished(run, node, record) {
    const { outcome } = record;
    keep(node, record);
    run.leave(node, record.at_s, outcome.status === "failed");
    run.become(node, outcome.status, outcome.via);
    Object.assign(node, {
      ended: record.at_s,
      failure: outcome.failure,
      recalled: record.recalled,
    });
    node.attempts = Math.max(node.attempts, outcome.attempts);
    node.value = outcome.value ? outcome.value.text : "";
    node.mark = outcome.value ? outcome.value.mark : "none";
    node.question = null;
    node.calls.clear();
  },
  ToolCalled(run, node, record) {
    keep(node, record);
    if (record.effect !== "once") return;
    run.onces += 1;
    node.onces.set(record.call, "");
    const other = (record.stands_for || "").split("@").pop();
    if (node.onces.has(other)) node.onces.set(other, "done"); // as a person says
    run.risky.add(node);
  },
  ToolReturned(run, node, record) {
    keep(node, record);
    if (node.onces.has(record.call)) node.onces.set(record.call, record.done);
  },
  ModelCalled(run, node, record) {
    keep(node, record);
    node.calls.set(record.call, { text: "", reasoning: "", tokens: 0 });
  },
  ModelStreamed(run, node, record) {
    const call = node.calls.get(record.call);
    if (!call) return;
    call.tokens += record.tokens;
    call.text = run.join(call.text, record.text, node);
    call.reasoning = run.join(call.reasoning, record.reasoning, node);
  },
  ModelAnswered(run, node, record) {
    keep(node, record);
    node.calls.delete(record.call);
  },
};
