//! `send` and `receive` against the kernel's TCP, in a network namespace.

use std::path::Path;
use std::process::{Command, Output};

/// The kernel's end: plain sockets, with the mode as argument.
const PEER: &str = r#"
import hashlib, socket, sys, time
mode, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
data = bytes((i * i >> 5) & 255 for i in range(1 << 16)) * 48

def connected():
    for _ in range(100):
        s = socket.socket(family)
        try:
            s.connect((host, port))
            return s
        except OSError:
            s.close()
            time.sleep(0.05)
    sys.exit("nobody listens")

def accepted():
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if mode == "slow":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    listener.bind((host, port))
    listener.listen()
    open("ready", "w").close()
    return listener.accept()[0]

def all_of(s):
    got = b""
    while piece := s.recv(1 << 18):
        got += piece
    return got

if mode == "write":
    s = connected()
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    all_of(s)
elif mode == "read":
    s = accepted()
    open("got", "wb").write(all_of(s))
elif mode == "slow":
    s = accepted()
    time.sleep(3)
    open("got", "wb").write(all_of(s))
elif mode == "half-close":
    s = accepted()
    got = all_of(s)
    s.sendall(got[::-1])
    s.close()
elif mode == "reset":
    s = accepted()
    s.recv(1000)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    s.close()
elif mode == "half":
    s = connected()
    s.sendall(data[:300_000])
    time.sleep(0.3)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    s.close()
elif mode == "vanish":
    s = accepted()
    s.recv(1000)
    time.sleep(5)
elif mode == "offer":
    s = connected()
    word, version, have, digits = s.makefile("rb").readline().split()
    have = int(have)
    same = hashlib.sha256(data[:have]).hexdigest().encode() == digits
    print(word.decode(), version.decode(), have > 0, same, flush=True)
    part = data[have:have + 900_000]
    s.sendall(b"bentpipe-resume 1 %d\n" % len(data) + part)
    time.sleep(1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    s.close()
elif mode == "data":
    open("data", "wb").write(data)
"#;

/// Returns exit code and output of a script in a namespace; prints the reason and returns `None` if no namespace can
/// be made.
fn in_namespace(name: &str, script: &str) -> Option<Output> {
    let possible = Command::new("unshare").args(["-rn", "python3", "-c", ""]).output();
    if !possible.is_ok_and(|output| output.status.success()) || !Path::new("/dev/net/tun").exists() {
        println!("skipped: this needs python3, /dev/net/tun and network namespaces (unshare -rn) or root");
        return None;
    }
    let folder = std::env::temp_dir().join(format!("bentpipe-on-wire-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("peer.py"), PEER).unwrap();
    let whole = format!(
        "set -u\nip link set lo up\npeer() {{ timeout 60 python3 peer.py \"$@\"; }}\n\
         ours() {{ timeout 60 {} \"$@\"; }}\nready() {{ until [ -e ready ]; do sleep 0.02; done; rm ready; }}\n\
         peer data 0 0\n{script}",
        env!("CARGO_BIN_EXE_bentpipe")
    );
    let mut command = Command::new("unshare");
    command.args(["-rn", "bash", "-c", &whole]).env("BENTPIPE", env!("CARGO_BIN_EXE_bentpipe"));
    let output = command.current_dir(&folder).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    Some(output)
}

fn succeeds(name: &str, script: &str) {
    let Some(output) = in_namespace(name, &format!("set -e\n{script}")) else { return };
    let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", said(&output.stdout), said(&output.stderr));
}

/// The engine receives, then sends, with the same options.
fn both_roles(name: &str, v6: bool, options: &str) {
    // The kernel's address exists only while the device exists, so its end listens on all addresses.
    let (ours, kernel, any) = match v6 {
        true => ("fd62:656e::2", "[fd62:656e::1]", "::"),
        false => ("10.105.0.2", "10.105.0.1", "0.0.0.0"),
    };
    succeeds(
        name,
        &format!(
            "ours receive 5001 got {options} & peer write {ours} 5001; wait $!; cmp data got; rm got
             peer read {any} 6001 & p=$!; ready; ours send {kernel}:6001 data {options}; wait $p; cmp data got"
        ),
    );
}

#[test]
fn files_go_both_ways_over_ipv4() {
    both_roles("v4", false, "--sha256");
}

#[test]
fn files_go_both_ways_over_ipv6_with_ecn() {
    both_roles("v6", true, "--set tcp.ecn=true --cc bbr");
}

#[test]
fn files_go_both_ways_without_sack_timestamps_and_scaling() {
    both_roles(
        "bare",
        false,
        "--cc newreno --set tcp.timestamps=false --set tcp.window-scaling=false --set 'tcp.mss=536 bytes'",
    );
}

#[test]
fn the_kernel_without_options_is_understood() {
    succeeds(
        "old",
        "cd /proc/sys/net/ipv4; echo 0 > tcp_sack; echo 0 > tcp_timestamps; echo 0 > tcp_window_scaling; cd - > /dev/null
         ours receive 5001 got & peer write 10.105.0.2 5001; wait $!; cmp data got; rm got
         peer read 0.0.0.0 6001 & p=$!; ready; ours send 10.105.0.1:6001 data; wait $p; cmp data got",
    );
}

#[test]
fn a_half_closed_connection_brings_the_reply() {
    succeeds(
        "half-close",
        "peer half-close 0.0.0.0 6001 & p=$!; ready; ours send 10.105.0.1:6001 data --reply got; wait $p
         python3 -c 'import sys; sys.exit(open(\"data\", \"rb\").read()[::-1] != open(\"got\", \"rb\").read())'",
    );
}

#[test]
fn a_slow_reader_is_waited_for_through_a_pipe() {
    succeeds(
        "slow",
        "peer slow 0.0.0.0 6001 & p=$!; ready; cat data | ours send 10.105.0.1:6001 -; wait $p; cmp data got
         ours receive 5001 | (sleep 2; cat > got) & peer write 10.105.0.2 5001; wait $!; cmp data got",
    );
}

#[test]
fn failures_have_their_exit_codes() {
    let codes = "
        peer reset 0.0.0.0 6001 & ready; ours send 10.105.0.1:6001 data; echo reset $?
        ours send 10.105.0.1:9 data; echo refused $?
        peer vanish 0.0.0.0 6001 & ready
        ( sleep 1; ip link set dev gone down ) &
        ours send 10.105.0.1:6001 - --tun gone --set 'tcp.user-timeout=2 s' < <(cat data; sleep 2; cat data); echo vanished $?
        ours send nonsense data; echo usage $?
        ours send 10.105.0.1:9 data --set tcp.enc=true; echo mistake $?
        ours send 10.105.0.1:9 no-such-file; echo nothing $?
        ours receive 5001 /dev/full & peer write 10.105.0.2 5001 2> /dev/null; wait $!; echo full $?
        ours receive 5001 | true & peer write 10.105.0.2 5001 2> /dev/null; wait; echo closed";
    if let Some(output) = in_namespace("codes", codes) {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wanted = "reset 1\nrefused 1\nvanished 1\nusage 2\nmistake 2\nnothing 2\nfull 1\nclosed\n";
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said, wanted, "{errors}");
        assert_eq!(errors.matches("refused").count(), 1, "once and in words: {errors}");
        assert!(errors.contains("nothing listens") && errors.contains("/dev/full"), "{errors}");
    }
}

/// An incomplete stream leaves no file, and an existing one is not overwritten.
#[test]
fn a_file_is_whole_or_absent() {
    let script = "
        peer half 10.105.0.2 5001 & ours receive 5001 got; echo broken $?; wait; ls -A | grep -c -e got -e part
        echo mine > got; ours receive 5001 got; echo there $?; cat got";
    if let Some(output) = in_namespace("whole", script) {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "broken 1\n0\nthere 2\nmine\n", "{errors}");
        assert!(errors.contains("got: exists and is no empty file, so it was not overwritten"), "{errors}");
    }
}

/// The peer disconnects twice; then the sender sends only the rest, and both ends verify the whole file.
#[test]
fn a_transfer_goes_on_where_it_broke_off() {
    let script = r#"
        for i in 1 2; do peer offer 10.105.0.2 5001 & ours receive 5001 got --resume; echo $?; wait; done
        [ -e got ] || stat -c %s got.part
        echo 1 > /proc/sys/net/ipv4/ip_forward
        "$BENTPIPE" receive 5001 got --resume 2> said & a=$!; until grep -q listening said; do sleep 0.02; done
        ours send 10.105.0.2:5001 data --resume --address 10.105.0.6/30 --json | python3 -c '
import hashlib, json, sys
report = json.load(sys.stdin)
data = open("data", "rb").read()
print(report["complete"], report["sent_bytes"] < len(data) - 1_700_000, report["sent_sha256"] == hashlib.sha256(data).hexdigest())'
        wait $a; echo $?; cmp data got && ls -A | grep -c part
        ours receive 5001 got --resume; echo $?; ours send 10.105.0.1:9 - --resume; echo $?"#;
    if let Some(output) = in_namespace("resume", script) {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let wanted = "bentpipe-resume 1 False True\n1\nbentpipe-resume 1 True True\n1\n1800000\nTrue True True\n0\n0\n2\n2\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{errors}");
        assert!(errors.contains("1800000 of 3145728 bytes are kept in got.part"), "{errors}");
        assert!(
            errors.contains("got: exists, so it was not overwritten; accepted: a path without a file"),
            "{errors}"
        );
    }
}

/// The second transfer begins with the test of the remembered path. A file of something else is refused and kept.
#[test]
fn a_transfer_remembers_the_one_before_it() {
    let script = r#"
        for i in 1 2; do
            peer read 0.0.0.0 6001 & p=$!; ready
            ours send 10.105.0.1:6001 data --remember known.json --trace trace.jsonl 2> said; echo $?; wait $p; cmp data got
            grep -c '"phase":"reconnaissance"' trace.jsonl | sed 's/[1-9][0-9]*/some/'; rm trace.jsonl
        done
        python3 -c '
import json, time
[[host, entry]] = json.load(open("known.json"))["capacities"].items()
print(host, entry["bytes"] > 50_000, 0 < entry["min_rtt_s"] < 1, abs(entry["saved_at_s"] - time.time()) < 60)'
        echo mine > known.json; ours send 10.105.0.1:6001 data --remember known.json; echo $?; cat known.json
        echo '{"capacities": {"10.105.0.1": {"bytes": -1}}}' > known.json
        ours send 10.105.0.1:6001 data --remember known.json; echo $?"#;
    if let Some(output) = in_namespace("remember", script) {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let wanted = "0\n0\n0\nsome\n10.105.0.1 True True True\n2\nmine\n2\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{errors}");
        for part in
            ["known.json: exists and is no list of capacities", "--remember known.json: invalid value"]
        {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
}

#[test]
fn two_stacks_with_one_address_are_refused() {
    let script = r#"
        "$BENTPIPE" receive 5001 --discard 2> first & a=$!; until grep -q listening first; do sleep 0.02; done
        ours receive 5001 --discard; echo $?
        "$BENTPIPE" receive 5001 --discard --address 10.105.0.6/30 2> second & b=$!; until grep -q listening second; do sleep 0.02; done
        kill $a $b; wait; echo both"#;
    if let Some(output) = in_namespace("claim", script) {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2\nboth\n", "{errors}");
        assert!(errors.contains("10.105.0.2, which another send or receive has"), "{errors}");
    }
}

/// A destination behind a host that does not forward, and behind one that forwards to a host without answers.
#[test]
fn a_host_that_does_not_forward_says_what_to_type() {
    let script = "
        ip route add 192.0.2.0/24 dev lo
        echo 0 > /proc/sys/net/ipv4/ip_forward; ours send 192.0.2.7:9 data; echo $?
        ours send 198.51.100.1:9 data; echo $?
        echo 1 > /proc/sys/net/ipv4/ip_forward; timeout -s INT 4 \"$BENTPIPE\" send 192.0.2.7:9 data; echo $?";
    if let Some(output) = in_namespace("forward", script) {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "3\n3\n124\n", "{errors}");
        for part in [
            "sysctl net.ipv4.ip_forward=1",
            "masquerade",
            "no route to 198.51.100.1",
            "no answer from 192.0.2.7",
        ] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
}

/// The kernel silently drops packets of a device with these addresses, so connecting would only time out.
#[test]
fn destinations_that_no_device_reaches_are_refused_at_once() {
    let refused = [
        ("127.0.0.1:6001", "10.105.0.1"),
        ("localhost:6001", "loopback"),
        ("[::1]:6001", "fd62:656e::1"),
        ("[::ffff:127.0.0.1]:6001", "10.105.0.1"),
        ("0.0.0.0:6001", "no host"),
        ("255.255.255.255:6001", "one host"),
        ("10.105.0.2:6001", "--address"),
    ];
    let script: String = refused.iter().map(|(to, _)| format!("ours send {to} data; echo $?\n")).collect();
    if let Some(output) = in_namespace("unreachable", &script) {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n".repeat(refused.len()), "{said}");
        for ((to, hint), line) in refused.iter().zip(said.lines()) {
            assert!(line.contains(to) && line.contains(hint) && line.contains("accepted"), "{to}: {line}");
        }
    }
}

#[test]
fn an_address_on_loopback_is_none_for_a_stack() {
    for address in ["127.0.0.2/30", "::1/126"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
        let output = command.args(["receive", "5001", "--discard", "--address", address]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(address) && said.contains("loopback"), "{said}");
    }
}

#[test]
fn without_privilege_it_says_what_is_missing() {
    // A user namespace without root: no capabilities, whoever runs the tests.
    let map = ["--user", "--map-user=1000", "--net"];
    let output = Command::new("unshare")
        .args(map)
        .args(["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
        .arg(env!("CARGO_BIN_EXE_bentpipe"))
        .args(["receive", "5001", "--discard"])
        .output();
    let Ok(output) = output else {
        println!("skipped: no unshare on this machine");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains("bentpipe") {
        println!("skipped: no user namespaces on this machine: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("root"), "{said}");
}
