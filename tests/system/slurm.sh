# slurm.sh - a Slurm of its own on loopback, for tests that source it after lib.sh.
#
# slurm_start N : N nodes of 2 CPUs, as Debian's packages have it.  Everything lies in $slurm and ends with the test.
slurm=$work/slurm

slurm_missing() {
    [ "$(id -u)" = 0 ] || { echo "needs root"; return; }
    local program
    for program in slurmctld slurmd sbatch squeue munged; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "no $program here (make deps-slurm)"; return; }
    done
    getent hosts "$(hostname -s)" >/dev/null || echo "this machine's name has no address"
}

slurm_conf() {
    local nodes=$1 ports=() i host
    host=$(hostname -s)
    for ((i = 0; i <= nodes; i++)); do ports+=("$(free_port)"); done
    cat >"$slurm/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool/%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=10
KillWait=2
MailProg=/bin/true
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
END
    for ((i = 1; i <= nodes; i++)); do
        echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[i]} CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000 State=UNKNOWN" >>"$slurm/slurm.conf"
    done
    echo "PartitionName=all Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP" >>"$slurm/slurm.conf"
    printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$slurm/cgroup.conf"
}

# slurmd NAME : starts one; its pid is in $slurmd
slurmd() {
    /usr/sbin/slurmd -D -N "$1" -f "$slurm/slurm.conf" >>"$slurm/$1.out" 2>&1 &
    slurmd=$!
    pids+=("$slurmd")
}

# slurmctld [OPTION] : starts the controller; its pid is in $slurmctld
slurmctld() {
    /usr/sbin/slurmctld -D "$@" -f "$slurm/slurm.conf" >>"$slurm/slurmctld.out" 2>&1 &
    slurmctld=$!
    pids+=("$slurmctld")
}

slurm_start() {
    local nodes=$1 i
    mkdir -p "$slurm"/{munge,state,spool}
    chmod 755 "$work" "$slurm"; chmod 700 "$slurm/munge"
    head -c 1024 /dev/urandom >"$slurm/munge/key"; chmod 600 "$slurm/munge/key"
    slurm_conf "$nodes"
    export SLURM_CONF=$slurm/slurm.conf
    /usr/sbin/munged --foreground --force --key-file="$slurm/munge/key" --socket="$slurm/munge/socket" --pid-file="$slurm/munge/pid" \
        --log-file="$slurm/munge/log" --seed-file="$slurm/munge/seed" >"$slurm/munge.out" 2>&1 &
    pids+=("$!")
    wait_for 5 test -S "$slurm/munge/socket" || return 1
    slurmctld -c
    for ((i = 1; i <= nodes; i++)); do mkdir -p "$slurm/spool/n$i"; slurmd "n$i"; done
    wait_for 20 slurm_is_idle "$nodes"
}
slurm_is_idle() { [ "$(sinfo --noheader -N -o %T 2>/dev/null | grep -c '^idle$')" = "$1" ]; }
slurm_jobs() { squeue --noheader --format=%T --states="$1" | wc -l; }
