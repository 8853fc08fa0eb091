# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The world `geo-terrestrial` for ns-2 (2.35): five SACK senders over a satellite and five terrestrial ones before one bottleneck of 10 Mbit/s with a
# queue of 50 packets; one packet in 100,000 is lost over the satellite.
#
#   ns geo-terrestrial.tcl SEED OVERHEAD
#
# OVERHEAD is ns-2's `overhead_`: each packet is held back by a random time up to so many seconds (0 for none). Prints goodput in Mbit/s.

if {[llength $argv] != 2} {
    puts stderr "geo-terrestrial.tcl: found $argv; accepted: SEED OVERHEAD"
    exit 2
}
foreach {seed overhead} $argv break

set header   40
set payload  960
set senders  5
set duration 550
# A queue which is not under test must not drop.
set ample    100000

remove-all-packet-headers
add-packet-header IP TCP Flags

set ns [new Simulator]
$ns rtproto Manual

proc generator {seed} {
    set rng [new RNG]
    for {set i 0} {$i < $seed} {incr i} { $rng next-substream }
    return $rng
}
set start_rng [generator $seed]
set loss_rng  [generator $seed]

Agent/TCP set packetSize_   $payload  ;# useHeaders_ adds the 40 header bytes
Agent/TCP set window_       64
Agent/TCP set windowInit_   2
Agent/TCP set minrto_       1.0
Agent/TCP set timestamps_   false
Agent/TCP set overhead_     $overhead
Agent/TCPSink set packetSize_ $header

proc route {node args} { eval [list [$node get-module Manual] add-route-to-adj-node] $args }

set junction [$ns node]
set exit_node [$ns node]
$ns duplex-link $junction $exit_node 10Mb 98ms DropTail
# DropTail refuses the packet that would make the queue `limit` long, so it holds one fewer than its limit.
$ns queue-limit $junction $exit_node 51
$ns queue-limit $exit_node $junction $ample
route $junction -default $exit_node
route $exit_node -default $junction

proc leaf {router delay_ms} {
    global ns ample
    set node [$ns node]
    $ns duplex-link $node $router 10Mb ${delay_ms}ms DropTail
    $ns queue-limit $node $router $ample
    $ns queue-limit $router $node $ample
    route $node -default $router
    route $router $node
    return $node
}

for {set i 0} {$i < 2 * $senders} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1]
    set rcv($i) [new Agent/TCPSink/Sack1]
    set source [leaf $junction [expr $i < $senders ? 176 : 1]]
    if {$i < $senders} {
        set loss [new ErrorModel]
        $loss unit pkt
        $loss set rate_ 1e-5
        set uniform [new RandomVariable/Uniform]
        $uniform use-rng $loss_rng
        $loss ranvar $uniform
        $ns link-lossmodel $loss $source $junction
    }
    $ns attach-agent $source $tcp($i)
    $ns attach-agent [leaf $exit_node 1] $rcv($i)
    $ns connect $tcp($i) $rcv($i)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$start_rng uniform 0 1] "$ftp start"
}

proc report {} {
    global header payload senders duration rcv
    set goodput(satellite) 0.0
    set goodput(terrestrial) 0.0
    for {set i 0} {$i < 2 * $senders} {incr i} {
        set segments [expr ([$rcv($i) set bytes_] - $header) / double($header + $payload)]
        set kind [expr {$i < $senders ? "satellite" : "terrestrial"}]
        set goodput($kind) [expr $goodput($kind) + $segments * $payload * 8 / $duration / 1e6]
    }
    puts [format "satellite %.3f terrestrial %.3f ratio %.3f" $goodput(satellite) $goodput(terrestrial) \
        [expr $goodput(satellite) / $goodput(terrestrial)]]
    exit 0
}

$ns at $duration report
$ns run
