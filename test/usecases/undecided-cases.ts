import { toChargeError, Unavailable } from "../../src/domain/unavailable.ts";
import { away, both, type Case, counted, find, findFresh, limited, peek, spend, take } from "./verify-key-cases.ts";

const beingChanged = new Unavailable("the key is being changed", { affectsOneKeyOnly: true });

export const undecided: Case[] = [
  {
    name: "a key that is there, but whose counter is not, twice, is no verdict: it is not looked up for ever",
    found: [counted(), counted(), counted()],
    spends: [{ outcome: "missing" }, { outcome: "missing" }],
    verdict: beingChanged,
    did: [find, spend, findFresh, spend, findFresh],
  },
  {
    name: "a key that is there, but that the limiter does not have twice, is no verdict",
    found: [limited, limited, limited],
    permits: ["missing", "missing"],
    verdict: beingChanged,
    did: [find, take, findFresh, take, findFresh],
  },
  { name: "a store that is away is no verdict", found: [away], verdict: away, did: [find] },
  {
    name: "a store that is away at the second look-up is no verdict",
    found: [limited, away],
    permits: ["missing"],
    verdict: away,
    did: [find, take, findFresh],
  },
  {
    name: "a limiter that cannot decide is no verdict, and no use is spent",
    found: [both()],
    permits: [away],
    verdict: away,
    did: [find, take],
    balance: 5,
  },
  {
    name: "a limiter that cannot say where a refused key stands is no verdict",
    found: [{ ...limited, enabled: false }],
    limiterFails: away,
    verdict: away,
    did: [find, peek],
  },
  {
    name: "a ledger that is away is no verdict",
    found: [counted()],
    spends: [away],
    verdict: toChargeError(away) as Error,
    did: [find, spend],
    balance: 5,
  },
  {
    name: "a use that is not known to be spent lets no request pass: the permit is released",
    found: [both()],
    permits: ["admitted"],
    spends: [away],
    verdict: toChargeError(away) as Error,
    did: [find, take, spend, "release"],
    balance: 5,
  },
  {
    name: "a refusal whose permit cannot be released is no verdict",
    found: [both()],
    permits: ["admitted"],
    spends: [{ outcome: "exhausted", remaining: 0 }],
    limiterFails: away,
    verdict: away,
    did: [find, take, spend, "release"],
    balance: 0,
  },
];
