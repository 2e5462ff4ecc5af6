import { registerArrivalScenarios } from './arrival.ts'
import { registerAuthenticationScenarios } from './authentication.ts'
import { registerClosingScenarios } from './closing.ts'
import { registerEnvelopeScenarios } from './envelopes.ts'
import { registerFrameScenarios } from './frames.ts'
import { registerLimitScenarios } from './limits.ts'
import { registerLostClockScenarios } from './lost-clocks.ts'
import { registerNetworkChangeScenarios } from './network-change.ts'
import { registerPlaceScenarios } from './places.ts'
import { registerSecrecyScenarios } from './secrecy.ts'
import { registerSignsOfLifeScenarios } from './signs-of-life.ts'
import type { StartService } from './start.ts'
import { registerStrangerScenarios } from './strangers.ts'
import { registerTokenExpiryScenarios } from './token-expiry.ts'
import { registerVanishingScenarios } from './vanishing.ts'

/** All of them for one composition. The embedded one has a file for each, so that they run side by side. */
export function registerConnectionScenarios(name: string, start: StartService): void {
  registerArrivalScenarios(name, start)
  registerAuthenticationScenarios(name, start)
  registerClosingScenarios(name, start)
  registerEnvelopeScenarios(name, start)
  registerFrameScenarios(name, start)
  registerLimitScenarios(name, start)
  registerLostClockScenarios(name, start)
  registerNetworkChangeScenarios(name, start)
  registerPlaceScenarios(name, start)
  registerSecrecyScenarios(name, start)
  registerSignsOfLifeScenarios(name, start)
  registerStrangerScenarios(name, start)
  registerTokenExpiryScenarios(name, start)
  registerVanishingScenarios(name, start)
}
