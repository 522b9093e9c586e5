"""Runs vLLM's `serve` command: `python -m weft.serving.vllm.launch.entrypoint ARGUMENTS`.

Weft's other entry point (`engine.MODULE`) ignores what only that command can do: ranks without a
server of their own, and several API processes. vLLM's own program `vllm` does not start where the
package is installed under another name.
"""

from __future__ import annotations

from typing import Final

MODULE: Final = "weft.serving.vllm.launch.entrypoint"
NEEDS_COMMAND: Final = frozenset(
    ("--headless", "--api-server-count", "--data-parallel-multi-port-external-lb")
)
"""Arguments that the server's module accepts and ignores."""


def main() -> None:
    """Parse the command line with vLLM's parser, and run it as `vllm serve` does."""
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.entrypoints.serve.utils.api_utils import cli_env_setup
    from vllm.logger import configure_logging_from_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    cli_env_setup()
    command = ServeSubcommand()
    args = make_arg_parser(FlexibleArgumentParser()).parse_args()
    configure_logging_from_args(args)
    command.validate(args)
    command.cmd(args)


if __name__ == "__main__":
    main()
