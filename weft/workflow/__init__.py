"""YAML and Python programs, and how they become graphs; picks models, tools and stores.

load(path: str | Path) -> Flow                 every defect raises one SourceError
loads(text: str, file: str = "<text>") -> Flow
json_schema() -> dict                          of the YAML document, for editors

Flow(name, *, models={...}, tools={...}, ...)
    .name: str   .description: str
    .inputs: Mapping[str, InputSpec]           InputSpec: .schema (JSON Schema), .default, .required
    .nodes: Mapping[str, NodeSpec]             NodeSpec: .kind (str), .description
    .outputs: Mapping[str, Value]
    .document: Document                        the frozen, typed document
    .check() -> None                           imports tools, then checks types; raises BuildError
    .start(inputs, *, listeners=(), models=None, tools=None, clock=None, store=None,
           concurrency=None, limits=None, deadline_s=None, budget=None, seed=None) -> FlowRun
    await .run(**inputs) -> FlowResult         .run_sync(**inputs) -> FlowResult
    .coerce_inputs({"k": "text"}) -> dict      command line text by declared type; InputError
    .to_yaml() -> str   .mermaid() -> str   .graph_view() -> GraphView

FlowRun: await .wait() -> FlowResult   .cancel(reason)   .answer(node, value)   .questions
FlowResult: .outputs (dict)  .missing (output -> why)  .outcomes  .usage  .status  .reasons
            .wall_s  .run (RunId)  .leaked  .ok
GraphView: .nodes: tuple[ViewNode, ...]  .edges: tuple[ViewEdge, ...]
    ViewNode: .id  .label  .kind  .inside: GraphView | None (body of a map, loop, ...)
              .groups: tuple[tuple[str, GraphView], ...] (cases of a branch)
    ViewEdge: .source  .target  .style ("data" | "after" | "fallback" | "degrade")
"""
