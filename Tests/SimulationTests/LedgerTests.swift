import Foundation
import Simulation
import Testing

@Suite("The ledger of mutations")
struct LedgerTests {
  private let mutation = UUID()
  private func accepted(_ origin: Ledger.Origin = .account(1)) -> Ledger {
    var ledger = Ledger()
    ledger.offer(mutation, origin, on: 0)
    ledger.answer(mutation, .accepted)
    return ledger
  }
  private let isFirst: (Ledger.Origin) -> Bool = { $0 == .account(1) }

  @Test("an accepted mutation must wait until the hub has it")
  func open() {
    var ledger = accepted()
    #expect(ledger.open(on: 0) == [mutation])
    #expect(ledger.open(on: 1).isEmpty)
    #expect(ledger.apply(mutation, as: 7, in: 1, mayBe: isFirst).isEmpty)
    #expect(ledger.open(on: 0).isEmpty)
  }

  @Test("one that was refused, or never answered, need not")
  func notAccepted() {
    var ledger = Ledger()
    ledger.offer(mutation, .account(1), on: 0)
    #expect(ledger.open(on: 0).isEmpty)
    ledger.answer(mutation, .refused)
    #expect(ledger.isRefused(mutation))
    #expect(ledger.open(on: 0).isEmpty)
    // Offered again and stored.
    ledger.offer(mutation, .account(1), on: 0)
    #expect(!ledger.isRefused(mutation))
    ledger.answer(mutation, .accepted)
    #expect(!ledger.isRefused(mutation))
    #expect(ledger.open(on: 0) == [mutation])
    // What is stored stays stored.
    ledger.answer(mutation, .refused)
    #expect(ledger.open(on: 0) == [mutation])
  }

  @Test("an attempt that was cut off may have stored what another was refused")
  func unknown() {
    var ledger = Ledger()
    ledger.offer(mutation, .account(1), on: 0)
    ledger.answer(mutation, .unknown)
    ledger.answer(mutation, .refused)
    #expect(!ledger.isRefused(mutation))
  }

  @Test("one of two attempts that is refused says nothing of the other")
  func twoAttempts() {
    var ledger = Ledger()
    for _ in 0..<2 { ledger.offer(mutation, .account(1), on: 0) }
    ledger.answer(mutation, .refused)
    #expect(!ledger.isRefused(mutation))
    ledger.answer(mutation, .refused)
    #expect(ledger.isRefused(mutation))
  }

  @Test("two versions, two accounts, a stranger's account and a refused one are wrong")
  func wrong() {
    var ledger = accepted()
    #expect(ledger.apply(mutation, as: 7, in: 1, mayBe: isFirst).isEmpty)
    #expect(ledger.apply(mutation, as: 7, in: 1, mayBe: isFirst).isEmpty)
    #expect(ledger.apply(mutation, as: 8, in: 1, mayBe: isFirst).map(\.check) == [.applyingOnce])
    #expect(
      ledger.apply(mutation, as: 8, in: 2, mayBe: { _ in true }).map(\.check) == [.applyingOnce])
    var other = accepted(.guest(Canary(20)))
    #expect(other.apply(mutation, as: 1, in: 1, mayBe: isFirst).map(\.check) == [.applyingOnce])
    var refused = Ledger()
    refused.offer(mutation, .account(1), on: 0)
    refused.answer(mutation, .refused)
    #expect(refused.apply(mutation, as: 1, in: 1, mayBe: isFirst).map(\.check) == [.refusing])
  }

  @Test("what the hub loses may be applied again, as another version")
  func lost() {
    var ledger = accepted()
    _ = ledger.apply(mutation, as: 7, in: 1, mayBe: isFirst)
    ledger.lose(above: 7, of: 1)
    ledger.lose(above: 0, of: 2)
    #expect(ledger.apply(mutation, as: 8, in: 1, mayBe: isFirst).map(\.check) == [.applyingOnce])
    ledger.lose(above: 6, of: 1)
    #expect(ledger.open(on: 0).isEmpty, "the device has it as acknowledged")
    #expect(ledger.apply(mutation, as: 3, in: 1, mayBe: isFirst).isEmpty)
  }

  @Test("what is given up need not wait, unless it was not given up after all")
  func givenUp() {
    var ledger = accepted()
    #expect(ledger.giveUp(on: 0, where: { $0 == .account(2) }).isEmpty)
    #expect(ledger.giveUp(on: 0, where: isFirst) == [mutation])
    #expect(ledger.open(on: 0).isEmpty)
    ledger.takeBack(mutation)
    #expect(ledger.open(on: 0) == [mutation])
  }

  @Test("what two calls may have given up waits only when both say that they have not")
  func givenUpTwice() {
    var ledger = accepted()
    _ = ledger.giveUp(on: 0, where: isFirst)
    ledger.giveUp(mutation)
    ledger.takeBack(mutation)
    #expect(ledger.open(on: 0).isEmpty)
    ledger.takeBack(mutation)
    #expect(ledger.open(on: 0) == [mutation])
  }
}
