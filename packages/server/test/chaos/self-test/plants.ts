import type { Plant } from './plant.ts'
import { plantsBeside } from './plants-beside.ts'
import { plantsInCalls } from './plants-calls.ts'
import { plantsInHooks } from './plants-hooks.ts'
import { plantsInLosses } from './plants-losses.ts'
import { plantsInStreams } from './plants-streams.ts'

export const plants: readonly Plant[] = [
  ...plantsInStreams,
  ...plantsInLosses,
  ...plantsInCalls,
  ...plantsInHooks,
  ...plantsBeside,
]
