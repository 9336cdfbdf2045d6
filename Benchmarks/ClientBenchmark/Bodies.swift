internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc

/// Measures a body that is downloaded and discarded.
///
/// Arguments: the client; the URL.
enum Download: Measurement {
    static let name = "download"

    static func run(_ arguments: [String]) async throws {
        try await measureBody(arguments[0]) { try await $0.download(arguments[1]) }
    }
}

/// Measures a body that is downloaded to a file. The file is removed afterwards.
///
/// Arguments: the client; the URL; the file.
enum Save: Measurement {
    static let name = "save"

    static func run(_ arguments: [String]) async throws {
        defer { unlink(arguments[2]) }
        try await measureBody(arguments[0]) { try await $0.save(arguments[1], to: arguments[2]) }
    }
}

/// Measures a file that is uploaded.
///
/// Arguments: the client; the file; the URL.
enum Upload: Measurement {
    static let name = "upload"

    static func run(_ arguments: [String]) async throws {
        try await measureBody(arguments[0]) {
            try await $0.upload(arguments[1], to: arguments[2])
            return try length(ofFile: arguments[1])
        }
    }
}

/// Performs one transfer with the client that has the given name, and prints throughput, CPU time and peak memory.
///
/// - Parameter transfer: Performs the transfer. Returns the number of bytes.
private func measureBody(_ name: String, _ transfer: (any Client) async throws -> Int) async throws {
    let client = client(name, connections: 1)
    let (start, cpu) = (now(), floors_processor_seconds())
    let mebibytes = try await Double(transfer(client)) / 1_048_576
    printFigure("throughput", mebibytes / (Double(now() - start) / 1e9))
    printFigure("cpu", (floors_processor_seconds() - cpu) * 1e3)
    printFigure("memory", peakMemory() / 1024)
}
