"""TensorZero's gateway in this process, from its Python package: `tensorzero_gateway.py CONFIGURATION` prints its address."""

import sys

from tensorzero.tensorzero import _start_http_gateway  # The package has no public name for its gateway over HTTP.

gateway = _start_http_gateway(config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False)
print(gateway.base_url, flush=True)
# It ends with its parent.
sys.stdin.read()
