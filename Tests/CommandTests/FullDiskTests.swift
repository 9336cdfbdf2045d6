internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// A queue on a file system that becomes full.
@Suite(.timeLimit(.minutes(5))) struct FullDiskTests {
    @Test func `a nearly full disk rejects new requests and completes accepted ones`() throws {
        let disk = try ScratchDirectory()
        let script = try ScratchDirectory()
        let socket = "--socket \(script.file("socket"))"
        let send = "\(Command.path) send \(socket) --queue always http://127.0.0.1:1/ -d @\(disk.path)/body"
        try Data(
            """
            mount -t tmpfs -o size=10m none \(disk.path)
            mkdir -m 700 \(disk.path)/queue
            head -c 60000 /dev/zero >\(disk.path)/body
            : >\(script.file("log"))
            \(Command.path) serve --state-dir \(disk.path)/queue \(socket) 2>>\(script.file("log")) &
            timeout 60 tail -n +1 -f \(script.file("log")) | grep -q 'ready$'
            accepted=0 status=0
            while [ $status = 0 ] && [ $accepted -lt 200 ]; do
                \(send) >>\(script.file("ids")) 2>\(script.file("errors"))
                status=$? accepted=$((accepted + 1))
            done
            echo refused with $status
            [ $accepted -gt 10 ] && echo after more than ten
            cat \(script.file("errors"))
            \(Command.path) status --check-queue --timeout 30s \(socket) | grep ^store
            curl -s --unix-socket \(script.file("socket")) http://n/ | grep -c 'disk is full'
            curl -s --unix-socket \(script.file("socket")) http://n/metrics | grep ^netwatch_store_disk_reserve
            \(Command.path) doctor \(socket) | sed -n 's/^store *problem *//p'
            \(Command.path) queue cancel \(socket) $(cat \(script.file("ids"))) >/dev/null && echo dropped
            \(send) >/dev/null 2>&1 && echo accepted
            kill $!
            wait $!
            head -c 2000000 /dev/zero >\(disk.path)/fill
            \(Command.path) doctor --state-dir \(disk.path)/queue | sed -n 's/^store *problem *//p'
            """.utf8
        ).write(to: URL(fileURLWithPath: script.file("run")))
        let output = try VethTestbed().near.shell("unshare -m sh \(script.file("run"))")
        let lines = output.split(separator: "\n").map(String.init)
        #expect(lines.prefix(2) == ["refused with 2", "after more than ten"], "\(output)")
        #expect(lines.dropFirst(2).first?.contains("bytes of disk space are free") == true, "\(output)")
        #expect(
            output.contains(
                "must stay free to store outcomes (`queue.limits.disk-reserve`, or less on a small file system)"
            ),
            "\(output)"
        )
        let notes = [
            "store       the disk is full, so new requests are refused, large ones first; `netwatch doctor` shows what to do",
            "1",
            "netwatch_store_disk_reserve_bytes 8388608",
        ]
        #expect(notes.allSatisfy(lines.contains), "\(output)")
        let advice =
            "8.4 MB must stay free for the requests that it has accepted; free some space, or set "
            + "`queue.limits.disk-reserve` to less than what is free"
        let findings = ["the disk is full, ", "the disk of `\(disk.path)/queue` is full, "]
        #expect(
            findings.allSatisfy { finding in
                lines.contains { $0.hasPrefix(finding) && $0.hasSuffix(advice) }
            },
            "\(output)"
        )
        #expect(lines.dropLast().suffix(2) == ["dropped", "accepted"], "\(output)")
    }
}
