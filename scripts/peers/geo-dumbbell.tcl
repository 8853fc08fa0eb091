# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The world `geo-dumbbell` for ns-2 (2.35): bulk TCP senders that share one
# geostationary satellite link.
#
#   senders --10 Mbit/s, 1 ms--> A --satellite--> B --10 Mbit/s, 1 ms--> sinks
#
# RTT without queueing 550 ms; a data packet is 1000 bytes on the wire
# (960 payload + 40 header), an ACK 40. One ACK per segment.
#
#   ns geo-dumbbell.tcl --variant=sack --per=1e-4 --flows=20 --rate=10 \
#       --buffer=50 --rwnd=64 --duration=550 --seed=1
#
# Prints one line of JSON. `cpu_s` is null: `run-ns2` fills it in.
# `setup_cpu_s` is the part of it spent before the first event: ns-2 needs
# some milliseconds per flow for that.

# ---- parameters ------------------------------------------------------------

array set par {
    variant   sack
    per       1e-4
    flows     20
    rate      10
    buffer    50
    rwnd      64
    duration  550
    seed      1
    scheduler Splay
    overhead  0
}
# variant:  newreno (no SACK) or sack
# per:      loss probability of a data packet on the satellite link
# rate:     satellite link, Mbit/s
# buffer:   packets that may wait for the satellite link, the one being sent
#           not counted
# rwnd:     receive window, segments; also the first ssthresh
# duration: simulated seconds
# scheduler: Splay was the fastest of ns-2's schedulers here, before Calendar,
#           Map and Heap; the result does not depend on it
# overhead: each packet is held back at its sender by a random time up to so
#           many seconds, so that packets of different senders do not keep step
foreach arg $argv {
    if {![regexp {^--([a-z]+)=(.+)$} $arg -> key value] || ![info exists par($key)]} {
        puts stderr "geo-dumbbell.tcl: unknown argument $arg; known: [lsort [array names par]]"
        exit 2
    }
    set par($key) $value
}
switch -- $par(variant) {
    newreno { set source Agent/TCP/Newreno; set sink Agent/TCPSink }
    sack    { set source Agent/TCP/Sack1;   set sink Agent/TCPSink/Sack1 }
    default { puts stderr "geo-dumbbell.tcl: variant is newreno or sack"; exit 2 }
}

set header      40
set payload     960
set access_rate 10Mb
set access_ms   1
set sat_ms      [expr 550 / 2 - 2 * $access_ms]
# A queue which is not under test must not drop.
set ample       100000

# ---- simulator -------------------------------------------------------------

# Only the packet headers in use: smaller packets, less time.
remove-all-packet-headers
add-packet-header IP TCP Flags

set ns [new Simulator]
$ns use-scheduler $par(scheduler)
# The topology is a tree, so default routes and one route per leaf suffice;
# the all-pairs computation would need minutes for thousands of nodes.
$ns rtproto Manual

# One substream per seed, one generator per purpose.
proc generator {seed} {
    set rng [new RNG]
    for {set i 0} {$i < $seed} {incr i} { $rng next-substream }
    return $rng
}
set start_rng [generator $par(seed)]
set loss_rng  [generator $par(seed)]

Agent/TCP set packetSize_   $payload  ;# useHeaders_ adds the 40 header bytes
Agent/TCP set window_       $par(rwnd)
Agent/TCP set windowInit_   2
Agent/TCP set minrto_       1.0
Agent/TCP set overhead_     $par(overhead)
Agent/TCP set timestamps_   false
Agent/TCPSink set packetSize_ $header

# ---- topology --------------------------------------------------------------

proc route {node args} { eval [list [$node get-module Manual] add-route-to-adj-node] $args }

set A [$ns node]
set B [$ns node]
$ns duplex-link $A $B $par(rate)Mb ${sat_ms}ms DropTail
# DropTail refuses the packet that would make the queue `limit` long, so it
# holds one fewer than its limit.
$ns queue-limit $A $B [expr $par(buffer) + 1]
$ns queue-limit $B $A $ample
route $A -default $B
route $B -default $A

if {$par(per) > 0} {
    set loss [new ErrorModel]
    $loss unit pkt
    $loss set rate_ $par(per)
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $loss_rng
    $loss ranvar $uniform
    # Behind the queue and the link, in this direction only.
    $ns link-lossmodel $loss $A $B
}

proc leaf {router} {
    global ns access_rate access_ms ample
    set node [$ns node]
    $ns duplex-link $node $router $access_rate ${access_ms}ms DropTail
    $ns queue-limit $node $router $ample
    $ns queue-limit $router $node $ample
    route $node -default $router
    route $router $node
    return $node
}

for {set i 0} {$i < $par(flows)} {incr i} {
    set tcp($i) [new $source]
    set rcv($i) [new $sink]
    $ns attach-agent [leaf $A] $tcp($i)
    $ns attach-agent [leaf $B] $rcv($i)
    $ns connect $tcp($i) $rcv($i)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$start_rng uniform 0 1] "$ftp start"
}

# ---- run and report --------------------------------------------------------

# User CPU seconds of this process so far (Linux counts in 1/100 s).
proc cpu_seconds {} {
    set file [open /proc/self/stat]
    set after_name [lindex [split [read $file] ")"] end]
    close $file
    return [expr [lindex $after_name 11] / 100.0]
}

proc report {} {
    global par header payload tcp rcv setup
    set segments 0.0
    set sent 0.0
    for {set i 0} {$i < $par(flows)} {incr i} {
        # bytes_: in order, with headers; the first is the SYN (one header).
        set bytes [expr [$rcv($i) set bytes_] - $header]
        if {$bytes > 0} {
            set segments [expr $segments + $bytes / ($header + $payload)]
        }
        set sent [expr $sent + [$tcp($i) set ndatapack_]]
    }
    set rate [expr $segments / $par(duration)]
    puts [format {{"tool":"ns2","variant":"%s","per":%g,"flows":%d,"rate_mbps":%g,"buffer":%d,"rwnd":%d,"duration_s":%g,"seed":%d,"goodput_bps":%.0f,"goodput_segments_per_s":%.3f,"data_packets_delivered":%.0f,"data_packets_sent":%.0f,"setup_cpu_s":%g,"cpu_s":null}} \
        $par(variant) $par(per) $par(flows) $par(rate) $par(buffer) $par(rwnd) \
        $par(duration) $par(seed) [expr $rate * $payload * 8] $rate $segments $sent $setup]
    exit 0
}

$ns at 0 {set setup [cpu_seconds]}
$ns at $par(duration) report
$ns run
