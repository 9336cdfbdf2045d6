// swift-tools-version: 6.2

import PackageDescription

let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// Set by `scripts/sanitize`: makes the locks of the netwatch command visible to the sanitizer, as in the tests.
let sanitizer = Context.environment["NETWATCH_SANITIZER"]

// The packages that the libraries do not use; see the end of this file.
let argumentParser = Package.Dependency.package(
    url: "https://github.com/apple/swift-argument-parser",
    from: "1.8.2"
)
let log = Package.Dependency.package(url: "https://github.com/apple/swift-log", from: "1.16.2")
let nio = Package.Dependency.package(url: "https://github.com/apple/swift-nio", from: "2.101.2")

// The targets are listed in the order of the layers: a target imports only targets above it.
// docs/ARCHITECTURE.md describes the targets; `make check` enforces the order.
let package = Package(
    name: "netwatch",
    products: [
        .library(name: "NetworkReachability", targets: ["NetworkReachability"]),
        .library(name: "ClientCore", targets: ["ClientCore"]),
        .library(name: "OfflineQueue", targets: ["OfflineQueue"]),
        .executable(name: "netwatch", targets: ["netwatch"]),
    ],
    dependencies: [
        argumentParser,
        log,
        nio,
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    ],
    targets: [
        .systemLibrary(name: "CNetwatchLinux"),
        .systemLibrary(
            name: "CNetwatchNetlink",
            pkgConfig: "libnl-route-3.0",
            providers: [.apt(["libnl-3-dev", "libnl-route-3-dev"])]
        ),
        .systemLibrary(
            name: "CNetwatchCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]
        ),
        .systemLibrary(
            name: "CNetwatchCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]
        ),
        .target(name: "NetwatchEventLoop", dependencies: ["CNetwatchLinux"], swiftSettings: strict),
        .target(
            name: "NetwatchNetlink",
            dependencies: ["NetwatchEventLoop", "CNetwatchNetlink"],
            swiftSettings: strict
        ),
        .target(
            name: "NetworkReachability",
            dependencies: ["NetwatchEventLoop", "NetwatchNetlink"],
            swiftSettings: strict
        ),
        .target(
            name: "NetwatchTransport",
            dependencies: ["CNetwatchCrypto", "NetwatchEventLoop", "CNetwatchCurl"],
            swiftSettings: strict
        ),
        .target(
            name: "ClientCore",
            dependencies: ["CNetwatchCrypto", "NetwatchTransport", "NetworkReachability"],
            swiftSettings: strict
        ),
        .target(
            name: "OfflineQueue",
            dependencies: [
                "CNetwatchCrypto", "CNetwatchLinux", "ClientCore", "NetwatchEventLoop", "NetwatchTransport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: strict
        ),
        .target(name: "CNetwatchTOML"),
        .target(
            name: "NetwatchService",
            dependencies: [
                "CNetwatchLinux", "CNetwatchTOML", "ClientCore", "NetwatchEventLoop", "NetworkReachability",
                "OfflineQueue",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "netwatch",
            dependencies: [
                "ClientCore", "NetwatchEventLoop", "NetwatchNetlink", "NetwatchService", "NetwatchTransport",
                "NetworkReachability", "OfflineQueue",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ] + (sanitizer == nil ? [] : ["CNetwatchTestSupport"]),
            swiftSettings: strict
        ),

        // Built by `make bench` and `scripts/fuzz`. Without the fuzzer's sanitizer FuzzNetlink does nothing.
        .systemLibrary(name: "CNetwatchFloors", path: "Benchmarks/Floors"),
        .target(
            name: "BenchmarkSupport",
            dependencies: ["CNetwatchFloors"],
            path: "Benchmarks/BenchmarkSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "ReachabilityBenchmark",
            dependencies: [
                "BenchmarkSupport", "CNetwatchFloors", "NetwatchEventLoop", "NetworkReachability",
            ],
            path: "Benchmarks/ReachabilityBenchmark",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "QueueBenchmark",
            dependencies: ["BenchmarkSupport", "CNetwatchFloors", "NetworkReachability", "OfflineQueue"],
            path: "Benchmarks/QueueBenchmark",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "ClientBenchmark",
            dependencies: ["BenchmarkSupport", "CNetwatchFloors", "ClientCore", "NetwatchTransport"],
            path: "Benchmarks/ClientBenchmark",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "FuzzNetlink",
            dependencies: ["NetwatchNetlink"],
            path: "Fuzz/FuzzNetlink",
            swiftSettings: strict
        ),

        // Linked only by test bundles and by programs that run under a sanitizer.
        .target(
            name: "CNetwatchTestSupport",
            path: "Tests/CNetwatchTestSupport",
            linkerSettings: [.linkedLibrary("dl")]
        ),
        .target(
            name: "CNetwatchFaultVFS",
            path: "Tests/CNetwatchFaultVFS",
            linkerSettings: [.linkedLibrary("sqlite3")]
        ),
        .target(
            name: "NetwatchTestSupport",
            dependencies: ["CNetwatchLinux", "CNetwatchTestSupport", "NetwatchEventLoop"],
            path: "Tests/NetwatchTestSupport",
            swiftSettings: strict
        ),
        // An example of a program that loses no request. The queue's tests run it.
        .executableTarget(
            name: "Gateway",
            dependencies: ["ClientCore", "OfflineQueue"],
            path: "Examples/Gateway"
        ),
        // The programs on the pages of the client and of the queue. scripts/docs compares them with the pages, and
        // scripts/check-embedding runs them.
        .executableTarget(name: "ClientExample", dependencies: ["ClientCore"], path: "Examples/Client"),
        .executableTarget(
            name: "QueueExample",
            dependencies: ["ClientCore", "OfflineQueue"],
            path: "Examples/Queue"
        ),
        // The process that the queue's tests kill to simulate a crash.
        .executableTarget(
            name: "QueueTestProcess",
            dependencies: ["CNetwatchFaultVFS", "NetwatchEventLoop", "NetwatchTestSupport", "OfflineQueue"],
            path: "Tests/QueueTestProcess",
            swiftSettings: strict
        ),
        // A separate process in which the client's tests measure and inject failures.
        .executableTarget(
            name: "ClientTestProcess",
            dependencies: [
                "ClientCore", "NetwatchEventLoop", "NetwatchNetlink", "NetwatchTestSupport",
                "NetwatchTransport",
                "NetworkReachability", "OfflineQueue",
            ],
            path: "Tests/ClientTestProcess",
            swiftSettings: strict
        ),
        .tests("NetwatchEventLoopTests", ["NetwatchEventLoop"]),
        .tests(
            "NetworkReachabilityTests",
            [
                "CNetwatchLinux", "CNetwatchTestSupport", "NetwatchEventLoop", "NetwatchNetlink",
                "NetworkReachability",
            ],
            isOptimized: true
        ),
        .tests("NetwatchTransportTests", ["NetwatchEventLoop", "NetwatchTransport"]),
        .tests(
            "ClientCoreTests",
            ["ClientCore", "ClientTestProcess", "NetwatchEventLoop", "NetwatchTransport"],
            isOptimized: true
        ),
        // The code of the guides, built with the settings of a typical application.
        .testTarget(
            name: "GuideTests",
            dependencies: ["ClientCore", "NetwatchTestSupport"],
            swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]
        ),
        .tests(
            "OfflineQueueTests",
            [
                "CNetwatchFaultVFS", "ClientCore", "Gateway", "NetwatchEventLoop", "NetwatchTransport",
                "OfflineQueue", "QueueTestProcess",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        .tests(
            "NetwatchServiceTests",
            [
                "CNetwatchLinux", "NetwatchEventLoop", "NetwatchService", "NetwatchTransport", "OfflineQueue",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]
        ),
        .tests(
            "NetwatchTests",
            [
                "NetwatchEventLoop", "NetwatchNetlink", "NetwatchService", "NetworkReachability",
                "OfflineQueue", "netwatch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .tests("CommandTests", ["CNetwatchLinux", "CNetwatchTestSupport", "NetwatchEventLoop"]),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)

// `make test` builds the libraries and their tests, and the thread sanitizer in CI builds the service as well.
// `make suites` and `make nightly` build all targets.
let programs: Set = [
    "netwatch", "NetwatchTests", "CommandTests", "GuideTests", "ClientExample", "QueueExample", "FuzzNetlink",
    "BenchmarkSupport", "ReachabilityBenchmark", "QueueBenchmark", "ClientBenchmark",
]
let service: Set = ["CNetwatchTOML", "NetwatchService", "NetwatchServiceTests"]

let omitted: (targets: Set<String>, packages: [Package.Dependency]) =
    switch Context.environment["NETWATCH_TARGETS"] {
    case "libraries": (programs.union(service), [argumentParser, log, nio])
    case "service": (programs, [argumentParser])
    default: ([], [])
    }
package.targets.removeAll { omitted.targets.contains($0.name) }
package.products.removeAll { omitted.targets.contains($0.name) }
package.dependencies.removeAll { dependency in omitted.packages.contains { $0 === dependency } }

extension Target {
    /// - Parameter isOptimized: Whether an optimized build also optimizes the tests, and not only the code that they test.
    ///   That doubles the time to compile them. Default: `false`. An optimized program releases its objects earlier, which
    ///   matters to the tests of sessions, managers and watches.
    static func tests(
        _ name: String,
        _ dependencies: [Dependency],
        isOptimized: Bool = false
    ) -> Target {
        let flags: [SwiftSetting] = isOptimized ? [] : [.unsafeFlags(["-Onone"])]
        return .testTarget(
            name: name,
            dependencies: dependencies + ["NetwatchTestSupport"],
            swiftSettings: strict + flags
        )
    }
}
