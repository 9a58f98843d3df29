# SPDX-License-Identifier: MIT
"""Servers: they start many processes, share memory, and size themselves by the machine."""
import glob
from frame import client


@client("psql", nightly=True, feature="postgresql")
def postgresql(host):
    bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    host.run(f"""set -e
{bin}/initdb -D data -A trust -U me >initdb.log 2>&1 || {{ cat initdb.log; exit 1; }}
echo "unix_socket_directories = '{host.dir}'" >>data/postgresql.conf
echo "listen_addresses = ''" >>data/postgresql.conf
echo "max_parallel_workers_per_gather = 4" >>data/postgresql.conf
{bin}/pg_ctl -D data -l server.log -w start >/dev/null
trap '{bin}/pg_ctl -D data -m immediate stop >/dev/null' EXIT
psql -h {host.dir} -U me postgres -Atc 'create table t as select generate_series(1, 200000) as i'
psql -h {host.dir} -U me postgres -Atc 'select sum(i) from t'
psql -h {host.dir} -U me postgres -Atc "copy (select 1) to program 'nproc >{host.dir}/nproc'"
cat {host.dir}/nproc
""", limit=400)
    host.equal(host.last.out, "SELECT 200000\n20000100000\nCOPY 1\n512\n")
