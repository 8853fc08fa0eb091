// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The world `geo-dumbbell` for ns-3 (3.37): bulk TCP senders that share one
// geostationary satellite link. The same world as geo-dumbbell.tcl.
//
//   senders --10 Mbit/s, 1 ms--> A --satellite--> B --10 Mbit/s, 1 ms--> sinks
//
// `run-ns3` builds it and calls it; it prints one line of JSON whose `cpu_s`
// is null until that script fills it in.
//
// Trust `sack` only. Without SACK, ns-3 3.37 loses count of the packets in
// flight after a timeout: a single flow at PER 1e-3 then gets far more than
// one window per round trip, and 20 flows get the same goodput at any PER.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t kPayload = 960; // + 20 TCP + 20 IP = 1000 bytes
constexpr uint16_t kPort = 5001;

// A point-to-point device adds a PPP header of 2 bytes. The links are faster
// by just that, so that a data packet takes the time of 1000 bytes.
DataRate
WireRate(double mbps)
{
    return DataRate(static_cast<uint64_t>(std::llround(mbps * 1e6 * 1002 / 1000)));
}

// NewReno whose congestion window stays within the receive window.
//
// ns-3 3.37 crashes when a duplicate ACK meets a receive window filled to the
// byte (it then sends a segment of length 0). So the window is enforced here,
// and the receiver offers more than is ever used.
class CappedNewReno : public TcpNewReno
{
  public:
    static uint32_t s_cap; // bytes

    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("CappedNewReno")
                               .SetParent<TcpNewReno>()
                               .AddConstructor<CappedNewReno>();
        return id;
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acked) override
    {
        TcpNewReno::IncreaseWindow(state, acked);
        if (state->m_cWnd > s_cap)
        {
            state->m_cWnd = s_cap;
        }
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<CappedNewReno>(this);
    }
};

uint32_t CappedNewReno::s_cap = 0;

struct Options
{
    std::string variant = "sack";
    double per = 1e-4;
    uint32_t flows = 20;
    double rate = 10;
    uint32_t buffer = 50;
    uint32_t rwnd = 64;
    double duration = 550;
    uint32_t seed = 1;
};

void
ConfigureTcp(const Options& opt)
{
    const bool sack = opt.variant == "sack";
    const uint32_t window = opt.rwnd * kPayload;
    CappedNewReno::s_cap = window;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(CappedNewReno::GetTypeId()));
    // Without SACK the recovery of RFC 6582; with it ns-3's own default.
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(sack ? TcpPrrRecovery::GetTypeId()
                                        : TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayload));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 * window));
    // The sender never waits for its application.
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 * window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
}

// Returns the segments delivered in order, all flows together, and the CPU
// seconds spent before the first event.
std::pair<uint64_t, double>
Simulate(const Options& opt)
{
    RngSeedManager::SetRun(opt.seed);
    ConfigureTcp(opt);

    NodeContainer routers(2);
    NodeContainer senders(opt.flows);
    NodeContainer sinks(opt.flows);

    // The topology is a tree: default routes are enough.
    Ipv4StaticRoutingHelper routing;
    InternetStackHelper stack;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();

    // Without flow control no queue disc is put in front of the devices: the
    // drop-tail queue of the device is the only one.
    PointToPointHelper p2p;
    p2p.DisableFlowControl();
    p2p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));

    p2p.SetDeviceAttribute("DataRate", DataRateValue(WireRate(opt.rate)));
    p2p.SetChannelAttribute("Delay", TimeValue(MilliSeconds(273)));
    NetDeviceContainer satellite = p2p.Install(routers);
    auto uplink = DynamicCast<PointToPointNetDevice>(satellite.Get(0));
    uplink->GetQueue()->SetMaxSize(QueueSize(PACKETS, opt.buffer));
    if (opt.per > 0)
    {
        auto loss = CreateObject<RateErrorModel>();
        loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        loss->SetRate(opt.per);
        DynamicCast<PointToPointNetDevice>(satellite.Get(1))->SetReceiveErrorModel(loss);
    }
    Ipv4AddressHelper addresses("12.0.0.0", "255.255.255.252");
    addresses.Assign(satellite);
    for (uint32_t i = 0; i < 2; ++i)
    {
        const Ipv4Address peer = i == 0 ? "12.0.0.2" : "12.0.0.1";
        routing.GetStaticRouting(routers.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(peer, 1);
    }

    p2p.SetDeviceAttribute("DataRate", DataRateValue(WireRate(10)));
    p2p.SetChannelAttribute("Delay", TimeValue(MilliSeconds(1)));
    const auto attach = [&](Ptr<Node> router, Ptr<Node> leaf, Ipv4AddressHelper& net) {
        Ipv4InterfaceContainer both = net.Assign(p2p.Install(router, leaf));
        net.NewNetwork();
        routing.GetStaticRouting(leaf->GetObject<Ipv4>())->SetDefaultRoute(both.GetAddress(0), 1);
        return both.GetAddress(1);
    };

    auto start = CreateObject<UniformRandomVariable>();
    Ipv4AddressHelper left("10.0.0.0", "255.255.255.252");
    Ipv4AddressHelper right("11.0.0.0", "255.255.255.252");
    std::vector<Ptr<PacketSink>> received;
    for (uint32_t i = 0; i < opt.flows; ++i)
    {
        attach(routers.Get(0), senders.Get(i), left);
        const Ipv4Address to = attach(routers.Get(1), sinks.Get(i), right);

        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), kPort));
        received.push_back(DynamicCast<PacketSink>(sink.Install(sinks.Get(i)).Get(0)));

        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to, kPort));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.SetAttribute("SendSize", UintegerValue(kPayload));
        bulk.Install(senders.Get(i)).Start(Seconds(start->GetValue(0, 1)));
    }

    const double setup = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    Simulator::Stop(Seconds(opt.duration));
    Simulator::Run();

    // What a sink has received is in order: it reads from a socket.
    uint64_t segments = 0;
    for (const auto& sink : received)
    {
        segments += sink->GetTotalRx() / kPayload;
    }
    Simulator::Destroy();
    return {segments, setup};
}

} // namespace

int
main(int argc, char* argv[])
{
    Options opt;
    CommandLine cmd(__FILE__);
    cmd.AddValue("variant", "newreno (no SACK) or sack", opt.variant);
    cmd.AddValue("per", "loss probability of a data packet on the satellite link", opt.per);
    cmd.AddValue("flows", "number of flows", opt.flows);
    cmd.AddValue("rate", "satellite link, Mbit/s", opt.rate);
    cmd.AddValue("buffer", "packets that may wait, the one being sent not counted", opt.buffer);
    cmd.AddValue("rwnd", "receive window, segments; also the first ssthresh", opt.rwnd);
    cmd.AddValue("duration", "simulated seconds", opt.duration);
    cmd.AddValue("seed", "run number of the random generator", opt.seed);
    cmd.Parse(argc, argv);
    if (opt.variant != "newreno" && opt.variant != "sack")
    {
        std::cerr << "geo-dumbbell: variant is newreno or sack\n";
        return 2;
    }

    const auto [segments, setup] = Simulate(opt);
    const double rate = static_cast<double>(segments) / opt.duration;
    std::printf("{\"tool\":\"ns3\",\"variant\":\"%s\",\"per\":%g,\"flows\":%u,\"rate_mbps\":%g,"
                "\"buffer\":%u,\"rwnd\":%u,\"duration_s\":%g,\"seed\":%u,"
                "\"goodput_bps\":%.0f,\"goodput_segments_per_s\":%.3f,"
                "\"data_packets_delivered\":%llu,\"setup_cpu_s\":%.3f,\"cpu_s\":null}\n",
                opt.variant.c_str(),
                opt.per,
                opt.flows,
                opt.rate,
                opt.buffer,
                opt.rwnd,
                opt.duration,
                opt.seed,
                rate * kPayload * 8,
                rate,
                static_cast<unsigned long long>(segments),
                setup);
    return 0;
}
