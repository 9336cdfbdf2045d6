internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

@testable internal import ClientCore

func transferHead(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> TransferHead {
    TransferHead(status: status, version: "HTTP/1.1", headers: fields.map { .init($0.key, $0.value) })
}

/// Returns the head of a response that can be resumed.
func wholeHead(_ total: Int, tag: String = "\"v1\"") -> TransferHead {
    transferHead(200, ["Accept-Ranges": "bytes", "ETag": tag, "Content-Length": "\(total)"])
}

func get(_ url: String = "http://example.com/file?id=1") -> URLRequest { URLRequest(url: URL(string: url)!) }

extension ResumeRecord {
    static func sample(
        received: Int64 = 100,
        total: Int64? = 1000,
        tag: String? = "\"v1\"",
        lastModified: String? = nil,
        partialFile: String = "/tmp/part"
    ) -> ResumeRecord {
        ResumeRecord(
            url: URL(string: "http://example.com/file?id=1")!,
            validator: ResumeValidator(entityTag: tag, lastModified: lastModified)!,
            total: total,
            received: received,
            synced: 50,
            bootID: BootID.current ?? "",
            partialFile: partialFile,
            created: Date(timeIntervalSince1970: 1_700_000_000),
            updated: Date(timeIntervalSince1970: 1_700_000_100)
        )
    }
}

/// Returns the error that a closure throws, if it is an `AFError`.
func afError(_ body: () throws -> Void) -> AFError? {
    do {
        try body()
        return nil
    } catch {
        return error as? AFError
    }
}

/// Returns the seeds of a random test: 1 to `count`, or only `NETWATCH_SEED` if it is set.
func seeds(_ count: UInt64) -> [UInt64] {
    let one = ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
    return one.map { [$0] } ?? Array(1...count)
}

/// An outcome that the test did not expect.
struct Unexpected: Error {
    let outcome: String
}

/// Changes the boot id in the record of a partial file, as if the machine had been restarted.
func restart(_ target: URL) throws {
    let file = ResumeRecordFile(of: target.path)
    guard var record = file.read() else { return }
    record.bootID = "11111111-1111-1111-1111-111111111111"
    try file.write(record)
}
