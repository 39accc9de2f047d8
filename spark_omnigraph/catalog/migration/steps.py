"""The steps of a schema change, as values.

`kind` is the word that plans carry. Names are those of the desired schema, apart from `old` and from what is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spark_omnigraph.catalog.identity import Kind, TableKey
from spark_omnigraph.catalog.types import Annotation, Cardinality, Constraint, PropType
from spark_omnigraph.errors import InternalError
from spark_omnigraph.words import TextEnum


class DropMode(TextEnum):
    """What becomes of dropped data: older states keep it until they are cleaned up, or it goes at once."""

    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class FixedValue:
    """One value for all rows that have none, as the property stores it."""

    value: object


@dataclass(frozen=True, slots=True)
class FromColumn:
    """The value that the row has in another stored column, by its accepted name."""

    column: str


Fill = FixedValue | FromColumn


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """A step of a schema change; `kind` is the word that plans carry."""

    kind: ClassVar[str]

    @property
    def table_key(self) -> TableKey:
        """Key of its type, in the desired schema where the type stands there; an interface has no table."""
        raise InternalError(f"a step of kind '{self.kind}' names no type")


@dataclass(frozen=True, slots=True)
class _TypeStep(SchemaStep):
    type_kind: Kind
    name: str

    @property
    def table_key(self) -> TableKey:
        return TableKey(f"{self.type_kind}:{self.name}")


@dataclass(frozen=True, slots=True)
class AddType(_TypeStep):
    """A type without rows comes."""

    kind: ClassVar[str] = "add_type"


@dataclass(frozen=True, slots=True)
class DropType(_TypeStep):
    """A type goes, with its rows."""

    kind: ClassVar[str] = "drop_type"
    mode: DropMode


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(_TypeStep):
    """`@description` and `@instruction` of a type become these."""

    kind: ClassVar[str] = "update_type_metadata"
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class RenameType(SchemaStep):
    """A type with all its rows gets another name."""

    kind: ClassVar[str] = "rename_type"
    type_kind: Kind
    old: str
    new: str

    @property
    def table_key(self) -> TableKey:
        return TableKey(f"{self.type_kind}:{self.new}")


@dataclass(frozen=True, slots=True)
class _StepOfType(SchemaStep):
    type_kind: Kind
    type_name: str

    @property
    def table_key(self) -> TableKey:
        return TableKey(f"{self.type_kind}:{self.type_name}")


@dataclass(frozen=True, slots=True)
class RenameProperty(_StepOfType):
    """A property keeps its values under another name."""

    kind: ClassVar[str] = "rename_property"
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddConstraint(_StepOfType):
    """`@index`, or a rule that every stored row has to keep from now on: `@unique`, `@range`, `@check`."""

    kind: ClassVar[str] = "add_constraint"
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class RemoveConstraint(_StepOfType):
    """An index or a rule goes."""

    kind: ClassVar[str] = "remove_constraint"
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class ChangeCardinality(_StepOfType):
    """Other bounds of the edges per source."""

    kind: ClassVar[str] = "change_cardinality"
    old: Cardinality
    new: Cardinality

    @property
    def tightens(self) -> bool:
        """Whether a number of edges that was inside the bounds may be outside."""
        lower = self.new.max is not None and (self.old.max is None or self.new.max < self.old.max)
        return lower or self.new.min > self.old.min


@dataclass(frozen=True, slots=True)
class PropertyStep(_StepOfType):
    """A step of one property."""

    property_name: str


@dataclass(frozen=True, slots=True)
class AddProperty(PropertyStep):
    """A property comes; stored rows get `value`, null without one."""

    kind: ClassVar[str] = "add_property"
    property_type: PropType
    value: Fill | None = None


@dataclass(frozen=True, slots=True)
class DropProperty(PropertyStep):
    """A property goes, with its values."""

    kind: ClassVar[str] = "drop_property"
    mode: DropMode


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(PropertyStep):
    """`@description` and `@instruction` of a property become these."""

    kind: ClassVar[str] = "update_property_metadata"
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class WidenProperty(PropertyStep):
    """Every value is kept, in a type that holds more."""

    kind: ClassVar[str] = "widen_property"
    old: PropType
    new: PropType


@dataclass(frozen=True, slots=True)
class RequireProperty(PropertyStep):
    """Null is allowed no more; rows that have it get `value`, or break the rule."""

    kind: ClassVar[str] = "require_property"
    value: Fill | None = None


@dataclass(frozen=True, slots=True)
class RelaxProperty(PropertyStep):
    """Null is allowed."""

    kind: ClassVar[str] = "relax_property"


@dataclass(frozen=True, slots=True)
class ExtendEnum(PropertyStep):
    """More values are allowed."""

    kind: ClassVar[str] = "extend_enum"
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NarrowEnum(PropertyStep):
    """Some values are allowed no more."""

    kind: ClassVar[str] = "narrow_enum"
    removed_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddEnum(PropertyStep):
    """A text property becomes an enum of these values."""

    kind: ClassVar[str] = "add_enum"
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveEnum(PropertyStep):
    """An enum property becomes one of any text."""

    kind: ClassVar[str] = "remove_enum"


@dataclass(frozen=True, slots=True)
class Unsupported(SchemaStep):
    """A difference that no apply bridges. `entity` is `node:T`, or `node:T.p` for a property."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str
    code: str | None = None
    way_out: str | None = None

    @property
    def table_key(self) -> TableKey:
        return TableKey(self.entity.partition(".")[0])

    @property
    def property_name(self) -> str | None:
        """The property at fault, None for one of the type itself."""
        return self.entity.partition(".")[2] or None

    @property
    def message(self) -> str:
        """`[CODE] reason`, and what to do instead."""
        code = "" if self.code is None else f"[{self.code}] "
        return f"{code}{self.reason}{'' if self.way_out is None else f'; {self.way_out}'}"
