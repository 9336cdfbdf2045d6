// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "Embedding",
    dependencies: [.package(name: "netwatch", path: "../..")],
    targets: [
        .executableTarget(
            name: "Embedding",
            dependencies: [.product(name: "NetworkReachability", package: "netwatch")]
        )
    ]
)
