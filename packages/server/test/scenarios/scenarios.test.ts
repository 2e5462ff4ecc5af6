// The scenarios that RINGWIRE_TEST_SCENARIOS names, as `nodes flows`: a composition and a group of table.ts. Without it
// all that runs on one process.
import { registerBackendCalls } from './backend/calls.ts'
import { registerBackendErasure } from './backend/erasure.ts'
import { registerBackendOnline } from './backend/online.ts'
import { registerBackendParticipants } from './backend/participants.ts'
import { registerPolicies } from './backend/policies.ts'
import { registerQuality } from './backend/quality.ts'
import { registerTimelines } from './backend/timelines.ts'
import { registerBackendTransfers } from './backend/transfers.ts'
import { registerAsleep } from './calls/asleep.ts'
import { registerProducts } from './calls/busy.ts'
import { registerCallStates } from './calls/call-states.ts'
import { type Composition, compositions } from './calls/composition.ts'
import { registerConnecting } from './calls/connecting.ts'
import { registerGlare } from './calls/glare.ts'
import { registerGroupMembers } from './calls/group-members.ts'
import { registerGroupWaking } from './calls/group-waking.ts'
import { registerGroups } from './calls/groups.ts'
import { registerHangingUp } from './calls/hanging-up.ts'
import { registerHistory } from './calls/history.ts'
import { registerInterfaceEvents } from './calls/interface-events.ts'
import { registerInviteHook } from './calls/invite-hook.ts'
import { registerInvites } from './calls/invites.ts'
import { registerLimits } from './calls/limits.ts'
import { registerLosses } from './calls/losses.ts'
import { registerMixed } from './calls/mixed.ts'
import { registerNotices } from './calls/notices.ts'
import { registerRaces } from './calls/races.ts'
import { registerRedial } from './calls/redial.ts'
import { registerRelay } from './calls/relay.ts'
import { registerRepeats } from './calls/repeats.ts'
import { registerRestart } from './calls/restart.ts'
import { registerRinging } from './calls/ringing.ts'
import { registerTransferHook } from './calls/transfer-hook.ts'
import { registerTurns } from './calls/turns.ts'
import { registerWaking } from './calls/waking.ts'
import { registerArrivalScenarios } from './connections/arrival.ts'
import { registerAuthenticationScenarios } from './connections/authentication.ts'
import { registerClosingScenarios } from './connections/closing.ts'
import { registerEnvelopeScenarios } from './connections/envelopes.ts'
import { registerFrameScenarios } from './connections/frames.ts'
import { registerLostClockScenarios } from './connections/lost-clocks.ts'
import { registerMessageLimitScenarios } from './connections/message-limits.ts'
import { registerNetworkChangeScenarios, registerWaitingScenarios } from './connections/network-change.ts'
import { registerPlaceScenarios } from './connections/places.ts'
import { registerSecrecyScenarios } from './connections/secrecy.ts'
import { registerSignsOfLifeScenarios } from './connections/signs-of-life.ts'
import { registerSocketLimitScenarios } from './connections/socket-limits.ts'
import { registerStrangerLimitScenarios } from './connections/stranger-limits.ts'
import { registerStrangerScenarios } from './connections/strangers.ts'
import { registerTokenExpiryScenarios } from './connections/token-expiry.ts'
import { registerVanishingScenarios } from './connections/vanishing.ts'
import { registerCutting } from './extended/cutting.ts'
import { registerDevices } from './extended/devices.ts'
import { registerGroupTransfers } from './extended/group-transfers.ts'
import { registerHolds } from './extended/holds.ts'
import { registerJoins } from './extended/joins.ts'
import { registerPeers } from './extended/peers.ts'
import { registerPresence } from './extended/presence.ts'
import { registerResume } from './extended/resume.ts'
import { registerSessions } from './extended/sessions.ts'
import { registerTakes } from './extended/takes.ts'
import { registerToldBack } from './extended/told-back.ts'
import { registerTransferChains } from './extended/transfer-chains.ts'
import { registerTransfers } from './extended/transfers.ts'
import { registerUpstream } from './extended/upstream.ts'
import { compositionNames, type Group, groups } from './table.ts'

const registrations: Readonly<Record<Group, (composition: Composition) => void>> = {
  flows({ name, start }) {
    registerInterfaceEvents(name, start)
    registerHangingUp(name, start)
    registerRelay(name, start)
    registerRaces(name, start)
  },
  states: ({ name, start }) => registerCallStates(name, start),
  backend({ name, start }) {
    registerQuality(name, start)
    registerBackendCalls(name, start)
    registerBackendParticipants(name, start)
    registerBackendErasure(name, start)
    registerBackendOnline(name, start)
    registerPolicies(name, start)
    registerBackendTransfers(name, start)
  },
  invites({ name, start }) {
    registerInvites(name, start)
    registerRepeats(name, start)
    registerGlare(name, start)
    registerRedial(name, start)
    registerProducts(name, start)
    registerInviteHook(name, start)
    registerTransferHook(name, start)
    registerLimits(name, start)
  },
  connecting({ name, start, areSessionsKept }) {
    registerNotices(name, start, areSessionsKept)
    registerConnecting(name, start)
  },
  history: ({ name, start }) => registerHistory(name, start),
  mixed: ({ name, start }) => registerMixed(name, start),
  restart({ name, start, areSessionsKept }) {
    registerRestart(name, start, areSessionsKept)
    registerToldBack(name, start)
  },
  time({ name, start }) {
    registerRinging(name, start)
    registerLosses(name, start)
  },
  groups({ name, start }) {
    registerGroups(name, start)
    registerGroupMembers(name, start)
  },
  turns: ({ name, start }) => registerTurns(name, start),
  arrival: ({ name, startLimited }) => registerArrivalScenarios(name, startLimited),
  authentication: ({ name, startLimited }) => registerAuthenticationScenarios(name, startLimited),
  closing: ({ name, startLimited }) => registerClosingScenarios(name, startLimited),
  envelopes({ name, startLimited }) {
    registerEnvelopeScenarios(name, startLimited)
    registerFrameScenarios(name, startLimited)
  },
  limits({ name, startLimited }) {
    registerMessageLimitScenarios(name, startLimited)
    registerSocketLimitScenarios(name, startLimited)
    registerStrangerLimitScenarios(name, startLimited)
  },
  losses({ name, startLimited }) {
    registerLostClockScenarios(name, startLimited)
    registerVanishingScenarios(name, startLimited)
    registerStrangerScenarios(name, startLimited)
  },
  places({ name, startLimited }) {
    registerPlaceScenarios(name, startLimited)
    registerNetworkChangeScenarios(name, startLimited)
    registerWaitingScenarios(name, startLimited)
  },
  secrecy({ name, startLimited }) {
    registerSecrecyScenarios(name, startLimited)
    registerTokenExpiryScenarios(name, startLimited)
  },
  cutting: ({ name, start }) => registerCutting(name, start),
  devices({ name, start }) {
    registerDevices(name, start)
    registerTakes(name, start)
  },
  peers({ name, start }) {
    registerHolds(name, start)
    registerPeers(name, start)
    registerTransfers(name, start)
    registerGroupTransfers(name, start)
    registerTransferChains(name, start)
    registerJoins(name, start)
    registerPresence(name, start)
  },
  resume: ({ name, start, areSessionsKept }) => registerResume(name, start, areSessionsKept),
  sessions: ({ name, start }) => registerSessions(name, start),
  signs: ({ name, startLimited }) => registerSignsOfLifeScenarios(name, startLimited),
  upstream: ({ name, start }) => registerUpstream(name, start),
  timelines: ({ name, start }) => registerTimelines(name, start),
  waking({ name, start }) {
    registerWaking(name, start)
    registerAsleep(name, start)
    registerGroupWaking(name, start)
  },
}

function register(given: string | undefined): void {
  const [name = 'embedded', group] = given?.split(' ') ?? []
  if (!isOneOf(compositionNames, name)) throw new Error(`no composition is called ${name}`)
  if (group !== undefined && !isOneOf(groups, group)) throw new Error(`no group of scenarios is called ${group}`)
  const composition = compositions[name]()
  for (const each of groups) if (group === undefined || group === each) registrations[each](composition)
}

function isOneOf<T extends string>(names: readonly T[], name: string): name is T {
  return (names as readonly string[]).includes(name)
}

register(process.env.RINGWIRE_TEST_SCENARIOS)
