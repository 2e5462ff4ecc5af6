/** Mutations that change nothing that anybody can see, and why. */
export const equivalents: Readonly<Record<string, string>> = {
  'decide.ts noteMoves: every instead: decision.steps.some': 'what is decided about one call has one step at most',
  "decide.ts withPlace: never: call.status === 'ringing'": 'the callee of a ringing call has no place; the types ask',
  "effects.ts missedData: only the left: call.caller.displayName ?? ''": 'a caller has a name; the types ask',
  "effects.ts missedData: another word: ''": 'a caller has a name; the types ask',
  "effects.ts ringingData: only the left: call.caller.displayName ?? ''": 'a caller has a name; the types ask',
  "effects.ts ringingData: another word: ''": 'a caller has a name; the types ask',
  'effects.ts ringingData: one more: 0': 'a new call has all of its time before it',
}
