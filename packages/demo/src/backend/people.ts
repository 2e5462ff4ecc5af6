import type { SignIn } from './tokens.ts'

/** One participant as the page shows it; one person may have the page open in several tabs. */
export type Person = Pick<SignIn, 'user_id' | 'role' | 'display_name'>

/** No session watches more of them. */
const maxPeople = 200

/** Who may be called, as the toy backend knows it: the application knows its people, the service knows who is there. */
export function createPeople() {
  /** Who signed in, or asked, longest ago comes first. */
  const people = new Map<string, Person>()

  return {
    join({ user_id, role, display_name }: SignIn): void {
      const key = `${role}/${user_id}`
      people.delete(key)
      people.set(key, { user_id, role, display_name })
      if (people.size > maxPeople) people.delete(people.keys().next().value as string)
    },
    /** The other people of the same role: those to whom a call may be handed over. */
    colleaguesOf: ({ role, user_id }: Pick<SignIn, 'role' | 'user_id'>): Person[] =>
      sorted([...people.values()].filter((person) => person.role === role && person.user_id !== user_id)),
    /** All agents, for the group that customers call. */
    agents: (): string[] => [...people.values()].flatMap(({ role, user_id }) => (role === 'agent' ? [user_id] : [])),
    peersOf({ role }: Pick<SignIn, 'role'>): Person[] {
      return sorted([...people.values()].filter((person) => person.role !== role))
    },
  }
}

function sorted(people: Person[]): Person[] {
  return people.sort((a, b) => a.display_name.localeCompare(b.display_name) || a.user_id.localeCompare(b.user_id))
}
