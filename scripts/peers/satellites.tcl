# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Iridium and Teledesic for ns-2 (2.35) and its satellite module: terminals in cities, one packet from the first to the second of each pair
# every 10 s, just after the module has looked at the sky. The constellations are
# those of the module's manual.
#
#   ns satellites.tcl iridium 6020 trace 37.9,-122.3,42.3,-71.1 52.5,13.4,35.7,139.7
#
# Writes the trace of the module; `compare-satellites` reads it.

lassign $argv kind duration trace
set pairs [lrange $argv 3 end]

switch $kind {
    iridium {
        array set sky {altitude 780 inclination 86.4 planes 6 each 11 separation 31.6 mask 8.2 isl 25Mb reach 1 longitude 10 seam 0}
    }
    teledesic {
        array set sky {altitude 1375 inclination 84.7 planes 12 each 24 separation 15 mask 40 isl 155Mb reach 2 longitude 8 seam 1}
    }
    default { puts stderr "satellites.tcl: iridium or teledesic, not $kind"; exit 2 }
}

HandoffManager/Term set elevation_mask_ $sky(mask)
HandoffManager/Term set term_handoff_int_ 10
HandoffManager/Sat set sat_handoff_int_ 10
HandoffManager/Sat set latitude_threshold_ 60
HandoffManager/Sat set longitude_threshold_ $sky(longitude)
HandoffManager set handoff_randomization_ false

# Routes are found when a packet asks, one source at a time. All pairs of 288 satellites at every change take very long.
SatRouteObject set data_driven_computation_ true
set ns [new Simulator]
$ns rtproto Dummy
set log [open $trace w]
$ns trace-all $log

$ns node-config -satNodeType polar -llType LL/Sat -ifqType Queue/DropTail -ifqLen 50 -macType Mac/Sat \
    -phyType Phy/Sat -channelType Channel/Sat -downlinkBW 1.5Mb -wiredRouting OFF

set spacing [expr 360.0 / $sky(each)]
for {set plane 0} {$plane < $sky(planes)} {incr plane} {
    for {set number 0} {$number < $sky(each)} {incr number} {
        set node [$ns node]
        # Every other plane is half a spacing ahead.
        set alpha [expr $spacing * ($number + 0.5 * ($plane % 2))]
        $node set-position $sky(altitude) $sky(inclination) [expr $sky(separation) * $plane] $alpha [expr $plane + 1]
        set satellite($plane,$number) $node
    }
}

proc link {kind a b} {
    global ns sky
    $ns add-isl $kind $a $b $sky(isl) Queue/DropTail 50
}
for {set plane 0} {$plane < $sky(planes)} {incr plane} {
    for {set number 0} {$number < $sky(each)} {incr number} {
        set node $satellite($plane,$number)
        $node set_next $satellite($plane,[expr ($number + $sky(each) - 1) % $sky(each)])
        for {set apart 1} {$apart <= $sky(reach)} {incr apart} {
            link intraplane $node $satellite($plane,[expr ($number + $apart) % $sky(each)])
            if {$plane + $apart < $sky(planes)} {
                link interplane $node $satellite([expr $plane + $apart],$number)
            }
        }
    }
}
if {$sky(seam)} {
    # The last plane flies against the first: who stands beside number n there is half a revolution less n from the node.
    set last [expr $sky(planes) - 1]
    for {set number 0} {$number < $sky(each)} {incr number} {
        link crossseam $satellite(0,$number) $satellite($last,[expr (3 * $sky(each) / 2 - $number) % $sky(each)])
    }
}
$ns node-config -satNodeType terminal
proc terminal {latitude longitude} {
    global ns satellite
    set node [$ns node]
    $node set-position $latitude $longitude
    set first $satellite(0,0)
    $node add-gsl polar LL/Sat Queue/DropTail 50 Mac/Sat 1.5Mb Phy/Sat [$first set downlink_] [$first set uplink_]
    return $node
}
foreach pair $pairs {
    lassign [split $pair ,] latitude longitude to_latitude to_longitude
    set from [terminal $latitude $longitude]
    set to [terminal $to_latitude $to_longitude]
    set udp [new Agent/UDP]
    set sink [new Agent/Null]
    $ns attach-agent $from $udp
    $ns attach-agent $to $sink
    $ns connect $udp $sink
    set cbr [new Application/Traffic/CBR]
    $cbr set packetSize_ 210
    $cbr set interval_ 10.0
    $cbr attach-agent $udp
    $ns at 10.001 "$cbr start"
}

$ns trace-all-satlinks $log
[new SatRouteObject] compute_routes
$ns at $duration "$ns flush-trace; exit 0"
$ns run
